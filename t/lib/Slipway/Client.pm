# SPDX-License-Identifier: ISC
package Slipway::Client;

# slipway, the command, with a configuration of its own.
#
#   my $slipway = Slipway::Client->new($api);          # signed in as admin
#   my ($status, $out, $err) = $slipway->run('list');
#   my ($status, $out, $err) = $slipway->run({ cwd => $dir, stdin => $text, env => {…} }, 'deploy');
#   my $on = $slipway->terminal('logs', '-f', $id);    # in a pseudo-terminal
#   $on->saw(qr/hello/); $on->type("\cC"); $on->end;

use strict;
use warnings;
use IO::Handle ();
use POSIX ();
use Slipway::Test;

my $made = 0;

# Options: token; home: of another client to share.  Without an API, it only runs
# other programs.
sub new {
	my ($class, $api, %opt) = @_;
	my %access = !$api ? () : (SLIPWAY_URL => $api->url, SLIPWAY_CACERT => $api->cacert,
		SLIPWAY_TOKEN => $opt{token} || $api->token('admin'));
	my $home = $opt{home} || tempdir() . '/client' . ++$made;
	mkdir $home if !-d $home;
	return bless { api => $api, home => $home, env => {
		HOME => $home, XDG_CONFIG_HOME => undef, TERM => 'dumb', NO_COLOR => undef,
		%access, %{ $opt{env} || {} } } }, $class;
}

sub home { my ($self) = @_; return $self->{home} }
sub config { my ($self) = @_; return "$self->{home}/.config/slipway/config" }
sub env { my ($self, %more) = @_; return { %{ $self->{env} }, %more } }

# Exit status, standard output, standard error.  Options: those of run_cmd(), and
# through: a command that runs it.
sub run {
	my ($self, @args) = @_;
	my $opt = ref $args[0] ? shift @args : {};
	my ($status, $out, $err) = run_cmd({ %$opt, env => $self->env(%{ $opt->{env} || {} }) },
	    @{ $opt->{through} || [] }, program('slipway'), @args);
	on_failure('the last command' => sub { return "slipway @args: $status\n$out$err" });
	return ($status >> 8, $out, $err);
}

# Runs it in a pseudo-terminal, in the background.
my $pty = 'import os,pty,sys; s = pty.spawn(sys.argv[1:]);'
    . ' sys.exit(128 + os.WTERMSIG(s) if os.WIFSIGNALED(s) else os.WEXITSTATUS(s))';
my $terminals = 0;
sub terminal {
	my ($self, @args) = @_;
	my $opt = ref $args[0] ? shift @args : {};
	my $out = tempdir() . '/terminal' . ++$terminals;
	my %env = %{ $self->env(TERM => 'xterm', %{ $opt->{env} || {} }) };
	pipe my $from, my $to or die "pipe: $!";
	my $pid = fork;
	die "fork: $!" if !defined $pid;
	if (!$pid) {
		for (keys %env) { if (defined $env{$_}) { $ENV{$_} = $env{$_} } else { delete $ENV{$_} } }
		close $to;
		open STDIN, '<&', $from or POSIX::_exit(127);
		open STDOUT, '>', $out or POSIX::_exit(127);
		open STDERR, '>&', \*STDOUT or POSIX::_exit(127);
		if (defined $opt->{cwd}) { chdir $opt->{cwd} or POSIX::_exit(127) }
		my @program = $opt->{program} ? @{ $opt->{program} } : program('slipway');
		{ no warnings; exec 'python3', '-c', $pty, @program, @args; }
		POSIX::_exit(127);
	}
	close $from;
	$to->autoflush(1);
	return bless { pid => $pid, keys => $to, out => $out }, 'Slipway::Client::Terminal';
}

package Slipway::Client::Terminal;

use Slipway::Test;

sub screen { my ($self) = @_; return slurp($self->{out}) // '' }
sub type { my ($self, $text) = @_; print { $self->{keys} } $text; return }
# Whether the program has ended.
sub ended {
	my ($self) = @_;
	$self->{status} = $?
	    if !defined $self->{status} && waitpid($self->{pid}, POSIX::WNOHANG()) == $self->{pid};
	return defined $self->{status};
}
# Waits until the terminal shows a text, or nothing can follow.
sub saw {
	my ($self, $re) = @_;
	on_failure('the terminal' => sub { return $self->screen });
	my $ended;
	return poll(60, sub {
		my $last = $self->ended;
		return $self->screen =~ $re || ($ended = $last);
	}) && !$ended;
}
# Waits for the end; the exit status, 128 and more for a signal.
sub end {
	my ($self) = @_;
	poll(120, sub { $self->ended }) or kill 'KILL', $self->{pid};
	close $self->{keys};
	return defined $self->{status} ? $self->{status} >> 8 : undef;
}

1;
