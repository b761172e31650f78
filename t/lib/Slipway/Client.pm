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
use Slipway::Test;

my $made = 0;

# Options: token; home: of another client to share.
sub new {
	my ($class, $api, %opt) = @_;
	my $home = $opt{home} || tempdir() . '/client' . ++$made;
	mkdir $home if !-d $home;
	return bless { api => $api, home => $home, env => {
		HOME => $home, XDG_CONFIG_HOME => undef, TERM => 'dumb', NO_COLOR => undef,
		SLIPWAY_URL => $api->url, SLIPWAY_CACERT => $api->cacert,
		SLIPWAY_TOKEN => $opt{token} || $api->token('admin'), %{ $opt{env} || {} } } }, $class;
}

sub home { my ($self) = @_; return $self->{home} }
sub config { my ($self) = @_; return "$self->{home}/.config/slipway/config" }
sub env { my ($self, %more) = @_; return { %{ $self->{env} }, %more } }

# Exit status, standard output, standard error.
sub run {
	my ($self, @args) = @_;
	my $opt = ref $args[0] ? shift @args : {};
	my ($status, $out, $err) = run_cmd({ %$opt, env => $self->env(%{ $opt->{env} || {} }) },
	    program('slipway'), @args);
	on_failure('the last command' => sub { return "slipway @args: $status\n$out$err" });
	return ($status >> 8, $out, $err);
}

1;
