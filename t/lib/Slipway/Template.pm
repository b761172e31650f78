# SPDX-License-Identifier: ISC
package Slipway::Template;

# Runs a template's steps as a job would: in a checkout, with nothing but a
# job's environment, by bash -eo pipefail, one after the other by runWhen; as
# root under a nameless account that can never gain privileges.

use strict;
use warnings;
use File::Basename qw(dirname);
use File::Path qw(make_path remove_tree);
use JSON::PP ();
use Slipway::Test;

my $deployment = 100;
our $uid = uids_from(3); # whose processes no runner ends
our $as_self = 0; # for what needs an account with a name
our $path = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin';

sub new {
	my ($class, $slug, %files) = @_;
	my $dir = srcdir() . "/src/templates/$slug";
	my $self = bless { dir => $dir, slug => $slug }, $class;
	$self->{template} = JSON::PP->new->utf8->decode(slurp("$dir/template.json"));
	$self->{work} = room("$slug.work");
	$self->checkout(%files);
	return $self;
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

# The checkout holds exactly these files: path => text; a text that starts with
# #! may be run.
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

# One deployment: {ok, id, ran => [names], failed => name, log}.  What the
# presets give as defaults is filled in, as the service does.
sub deploy {
	my ($self, %env) = @_;
	my $id = ++$deployment;
	my %vars = map { $_->{key} => $_->{default} }
	    grep { defined $_->{default} } @{ $self->{template}{envPresets} };
	%vars = (%vars, %env);
	delete $vars{$_} for grep { !defined $vars{$_} } keys %vars;
	my @env = map { "$_=$vars{$_}" } sort keys %vars;
	my $home = room("home.$id");
	my %result = (ok => 1, id => $id, ran => [], log => '');
	for my $step (@{ $self->{template}{steps} }) {
		my $when = $step->{runWhen} || 'success';
		next if $when eq 'success' && !$result{ok};
		next if $when eq 'failure' && $result{ok};
		my ($status, $out) = run_cmd({ cwd => $self->{work} }, $self->as_job(
			'/usr/bin/env', '-i', "PATH=$path", "HOME=$home", 'LANG=C.UTF-8',
			'CI=true', "SLIPWAY_DEPLOYMENT_ID=$id", 'SLIPWAY_PROJECT_ID=1',
			'SLIPWAY_PROJECT=sample', 'SLIPWAY_PIPELINE=sample',
			'SLIPWAY_BRANCH=main', 'SLIPWAY_COMMIT=' . '0' x 40,
			'SLIPWAY_REPOSITORY=https://git.example.org/a/b',
			"SLIPWAY_WORKSPACE=$self->{work}", @env,
			'/bin/bash', '-c', 'exec 2>&1; umask 077; exec /bin/bash -eo pipefail -- "$0"',
			"$self->{dir}/$step->{file}"));
		push @{ $result{ran} }, $step->{name};
		$result{log} .= "--- $step->{name}\n$out";
		next if $status == 0;
		$result{ok} = 0;
		$result{failed} = $step->{name} if !defined $result{failed};
		$result{broken} = $step->{name};
	}
	return \%result;
}

# The command as a job's user runs it.
sub as_job {
	my ($self, @cmd) = @_;
	return ('setpriv', '--no-new-privs', @cmd) if !is_root() || $as_self;
	return ('setpriv', "--reuid=$uid", "--regid=$uid", '--clear-groups',
	    '--no-new-privs', @cmd);
}

1;
