# SPDX-License-Identifier: ISC
package Slipway::Template;

# Runs the steps of a template like a job: in a checkout, with the environment of a
# job only, by bash -eo pipefail, in order and by runWhen.  As root, the steps run
# under a nameless account that cannot gain privileges.

use strict;
use warnings;
use File::Basename qw(basename dirname);
use File::Path qw(make_path remove_tree);
use Cpanel::JSON::XS ();
use POSIX ();
use Slipway::Test;
{ package main; require 'syscall.ph'; } # defines its functions in the package that loads it first

my $deployment = 100;
our $uid = uids_from(3); # no runner ends its processes
our $as_self = 0; # for steps that need an account with a name
our $path = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin';

sub new {
	my ($class, $slug, %files) = @_;
	my $dir = srcdir() . "/src/templates/$slug";
	my $self = bless { slug => $slug }, $class;
	$self->{template} = Cpanel::JSON::XS->new->utf8->decode(slurp("$dir/template.json"));
	my %file = map { $_->{file} => 1 } @{ $self->{template}{steps} };
	for my $name (sort keys %file) {
		$self->{script}{$name} = tempdir() . "/$slug-" . basename($name);
		spew($self->{script}{$name}, script("$dir/$name"), 0644);
	}
	$self->{work} = room("$slug.work");
	$self->checkout(%files);
	return $self;
}

# The text of a file of templates with the parts that it includes, as the service
# shows it.
sub script {
	my ($file) = @_;
	my $text = slurp($file);
	my $part = sub {
		my $shared = slurp(dirname($file) . "/$_[0]");
		$shared =~ s/\A(?:#.*\n)+\n?//;
		return $shared;
	};
	$text =~ s{^\. (\.\./common/[^/\n]+)\n}{$part->($1)}gme;
	return $text;
}

# A directory that the steps may write.
sub room {
	my ($name) = @_;
	my $dir = tempdir() . "/$name";
	make_path($dir);
	own($dir);
	return $dir;
}

sub own { chown $uid, $uid, @_ if is_root() && !$as_self; return }

# Replaces the files of the checkout: path => text; a text that starts with #! is
# executable.
sub checkout {
	my ($self, %files) = @_;
	my $work = $self->{work};
	remove_tree($work, { keep_root => 1 });
	for my $name (sort keys %files) {
		my $file = "$work/$name";
		my $at = $work;
		for my $part (split m{/}, dirname($name)) {
			$at .= "/$part";
			next if -d $at;
			mkdir $at or die "$at: $!";
			own($at);
		}
		spew($file, $files{$name}, $files{$name} =~ /^#!/ ? 0755 : 0644);
		own($file);
	}
	return;
}

sub work { return $_[0]{work} }

# Runs a deployment: {ok, id, ran => [names], failed => name, log}.  Adds the
# defaults of the presets, like the service.
sub deploy {
	my ($self, %env) = @_;
	my $id = ++$deployment;
	my %vars = map { $_->{key} => $_->{default} }
	    grep { defined $_->{default} } @{ $self->{template}{envPresets} };
	%vars = (%vars, %env);
	delete $vars{$_} for grep { !defined $vars{$_} } keys %vars;
	my $home = room("home.$id");
	my %job = (PATH => $path, HOME => $home, LANG => 'C.UTF-8', CI => 'true',
		SLIPWAY_DEPLOYMENT_ID => $id, SLIPWAY_PROJECT_ID => 1, SLIPWAY_PROJECT => 'sample',
		SLIPWAY_PIPELINE => 'sample', SLIPWAY_BRANCH => 'main', SLIPWAY_COMMIT => '0' x 40,
		SLIPWAY_REPOSITORY => 'https://git.example.org/a/b', SLIPWAY_WORKSPACE => $self->{work},
		%vars);
	my %run = ($self->as_job, cwd => $self->{work}, umask => 077, merged => 1,
		env => { (map { $_ => undef } keys %ENV), %job });
	my %result = (ok => 1, id => $id, ran => [], log => '');
	for my $step (@{ $self->{template}{steps} }) {
		my $when = $step->{runWhen} || 'success';
		next if $when eq 'success' && !$result{ok};
		next if $when eq 'failure' && $result{ok};
		my ($status, $out) = run_cmd(\%run,
		    '/bin/bash', '-eo', 'pipefail', '--', $self->{script}{ $step->{file} });
		push @{ $result{ran} }, $step->{name};
		$result{log} .= "--- $step->{name}\n$out";
		next if $status == 0;
		if ($step->{mayFail}) {
			push @{ $result{warnings} }, $step->{name};
			next;
		}
		$result{ok} = 0;
		$result{failed} = $step->{name} if !defined $result{failed};
		$result{broken} = $step->{name};
	}
	return \%result;
}

# Options of run_cmd() and start_process(): the command runs as the user of a job.
my $no_new_privs = 38; # PR_SET_NO_NEW_PRIVS of prctl(2)
sub as_job {
	my $changes = is_root() && !$as_self;
	return (before => sub {
		if ($changes) {
			syscall(&main::SYS_setgroups, 0, 0) == 0 && POSIX::setgid($uid)
			    && POSIX::setuid($uid) or die "uid $uid: $!";
		}
		syscall(&main::SYS_prctl, $no_new_privs, 1, 0, 0, 0) == 0 or die "prctl: $!";
	});
}

1;
