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

# undef, or why it cannot run.
sub missing {
	my @folders = split /:/, "$ENV{PATH}:/usr/sbin";
	for my $program (qw(laminard laminarc)) {
		return "$program is not installed" if !grep { -x "$_/$program" } @folders;
	}
	return undef;
}

sub _client {
	my (@args) = @_;
	my ($status, $out, $err) = run_cmd({ env => { LAMINAR_HOST => "unix:$dir/rpc" } }, 'laminarc', @args);
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
		LAMINAR_BIND_RPC => "unix:$dir/rpc" } }, 'laminard');
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
