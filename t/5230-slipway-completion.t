#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# bash, zsh and fish complete commands, options and names of slipway.

use strict;
use warnings;
use Test::More;
use Slipway::API;
use Slipway::Client;
use Slipway::DB;
use Slipway::Test;

my $api = Slipway::API->start(db => Slipway::DB->start);
my $slipway = Slipway::Client->new($api);
my ($shop, $blog) = map {
	$api->make('/api/projects', { name => $_->[0],
		repository => "https://git.example.org/t/$_->[1]" })->{id}
} ['web shop', 'shop'], ["o'blog", 'blog'];
$api->make('/api/environments', { projectId => $shop, name => $_ }) for qw(production preview);
$api->make('/api/environments', { projectId => $blog, name => 'staging' });

# The completions that slipway offers for these words.
sub offered {
	my ($status, $out) = $slipway->run('__complete', @_);
	return join ' | ', map { s/\t.*//r } split /\n/, $out;
}
is(offered('st'), 'status', 'a command is completed');
is(offered('auth', 'log'), 'login | logout', 'a subcommand is completed');
is(offered('cache', ''), 'clear', 'the only subcommand is completed');
is(offered('cache', 'clear', '-p', 'w'), 'web shop', 'the project of a subcommand is completed');
like(offered('deploy', '--e'), qr/^--environment \| --env \| --env-file$/, 'an option is completed');
is(offered('deploy', '--env-file', ''), ':files', 'the name of a file is left to the shell');
is(offered('apply', ''), ':files', 'a word that names a file is left to the shell, too');
is(offered('list', '-s', 'su'), 'success', 'a value of an option is completed');
is(offered('list', '--status=su'), '--status=success', 'a value after a sign is completed');
is(offered('list', '--status', '=', 'su'), 'success', 'a value that bash separates is completed');
is(offered('pipelines', '-p', ''), "o'blog | web shop", 'names of projects are completed');
is(offered('deploy', '-p', 'web shop', '-E', 'p'), 'production | preview',
    'environments of the project that was named are completed');
is(offered('deploy', '-p', $blog, '-E', ''), 'staging', 'the project may be named by its id');
is(offered('completion', ''), 'bash | zsh | fish', 'an argument is completed');
is(offered('list', 'x', ''), '', 'nothing is offered where no argument is expected');
is(($slipway->run({ env => { SLIPWAY_TOKEN => 'slw_wrong' } }, '__complete', 'pipelines', '-p', ''))[2], '',
    'completion is silent if the service rejects the request');

# The same in real shells.
my %env = (PATH => builddir() . ":$ENV{PATH}", HISTFILE => undef, PS1 => '$ ');
my $script = tempdir() . '/complete';
for my $shell (qw(bash zsh fish)) {
	my ($status, $out) = $slipway->run('completion', $shell);
	spew("$script.$shell", $out);
	is((run_cmd($shell, '-n', "$script.$shell"))[0], 0, "$shell accepts the script");
}
sub fish {
	my ($line) = @_;
	my ($status, $out, $err) = run_cmd({ env => $slipway->env(%env) }, 'fish', '--no-config', '-c',
	    "source $script.fish; complete -C '$line'");
	return join ' | ', map { s/\t.*//r } split /\n/, $out;
}
is(fish('slipway dep'), 'deploy', 'fish completes a command');
is(fish('slipway list --sta'), '--status', 'fish completes an option');
like(fish('slipway pipelines -p w'), qr/^web\\? shop$/, 'fish completes the name of a project');
is(fish('slipway deploy -p "web shop" -E pro'), 'production', 'fish completes the name of an environment');
is(fish("slipway api GET /x -i $script.z"), "$script.zsh", 'fish completes the name of a file');

# Types a line with a tab at its end and waits until the shell has completed it.
sub plain { return $_[0]->screen =~ s/\e\[[\d;?]*[A-Za-z]|\e[=>]|\x07//gr =~ s/[^\n]\x08//gr }
sub completes {
	my ($on, $shell, $typed, $re, $what) = @_;
	my $before = length plain($on);
	$on->type("$typed\t");
	ok(poll(60, sub { substr(plain($on), $before) =~ $re }), "$shell completes $what")
	    or diag(substr plain($on), $before);
	$on->type("\cU");
	return;
}
for (['bash', '--norc', '--noprofile', '-i'], ['zsh', '-f', '-i']) {
	my ($shell) = @$_;
	my $on = $slipway->terminal({ program => $_, env => \%env, cwd => tempdir() });
	$on->type("autoload -U compinit; compinit -u -D\n") if $shell eq 'zsh';
	$on->type("source $script.$shell; echo rea''dy\n");
	ok($on->saw(qr/ready/), "$shell reads the script");
	completes($on, $shell, 'slipway dep', qr/deploy /, 'a command');
	completes($on, $shell, 'slipway list --sta', qr/--status /, 'an option');
	completes($on, $shell, 'slipway list --status=fai', qr/--status=failed /, 'a value after a sign');
	completes($on, $shell, 'slipway pipelines -p w', qr/web\\ shop /, 'the name of a project');
	completes($on, $shell, 'slipway deploy -p web\\ shop -E pro', qr/-E production /,
	    'the name of an environment');
	completes($on, $shell, 'slipway api GET /x -i complete.z', qr/complete\.zsh /, 'the name of a file');
	$on->type("exit\n");
	$on->end;
}

done_testing();
