# SPDX-License-Identifier: ISC
package Slipway::Bench::Laminar;

# Laminar with the same no-op job, where it is installed.

use strict;
use warnings;
use Slipway::Bench::Idle;
use Slipway::Test;
use Time::HiRes qw(sleep time);

my $pid;
my $dir;

sub _path {
	my ($name) = @_;
	return (grep { -x } map { "$_/$name" } split /:/, "$ENV{PATH}:/usr/sbin")[0];
}

# undef, or why it cannot run.
sub missing {
	for my $name (qw(laminard laminarc)) {
		return "$name is not installed" if !defined _path($name);
	}
	return undef;
}

sub _client {
	my (@args) = @_;
	my ($status, $out, $err) = run_cmd({ env => { LAMINAR_HOST => "unix:$dir/rpc" } },
	    _path('laminarc'), @args);
	die "laminarc @args: $out$err" if $status != 0;
	return $out;
}

sub start {
	return if $pid;
	$dir = tempdir() . '/laminar';
	mkdir $_ or die "$_: $!" for map { "$dir$_" } '', '/cfg', '/cfg/jobs', '/cfg/contexts';
	spew("$dir/cfg/jobs/noop.run", "#!/bin/sh\n:\n", 0755);
	spew("$dir/cfg/contexts/default.conf", "EXECUTORS=4\n");
	$pid = start_process({ env => { LAMINAR_HOME => $dir, LAMINAR_BIND_HTTP => "unix:$dir/http",
		LAMINAR_BIND_RPC => "unix:$dir/rpc" } }, _path('laminard'));
	poll(15, sub { -S "$dir/rpc" }) or die 'laminard did not start';
	_client('run', 'noop');
	return;
}

# Queues n jobs and waits until all have ended: { rate => jobs/s }.
sub drain {
	my ($n) = @_;
	start();
	my $began = time;
	_client('run', ('noop') x $n);
	return { rate => $n / (time - $began) };
}

# Without wake-ups and writes of its own: { pss => MiB }.
sub idle {
	start();
	sleep 1;
	return { pss => Slipway::Bench::Idle::pss($pid) };
}

1;
