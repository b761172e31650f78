#!/usr/bin/perl
# SPDX-License-Identifier: ISC
#
# Opens a log of 100 MB (BENCH_LOG, in MB) in the console and prints how long it takes
# until its end is shown, how many frames a second the browser draws while it scrolls,
# and how much memory the tab takes.  It has no assertions.
#
#   make bench-console [BENCH_LOG=10]

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use Slipway::API;
use Slipway::Browser;
use Slipway::DB;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(time);

$| = 1;
my $mb = $ENV{BENCH_LOG} || 100;
die "BENCH_LOG=$mb is not a number of MB\n" if $mb !~ /^[1-9]\d*$/;
my $db = Slipway::DB->start(options => ['--max-allowed-packet=16M']);
my $api = Slipway::API->start(db => $db);
$api->start_live;
$db->sql("INSERT INTO project (id, name, repository, project_dir)"
    . " VALUES (1, 'p', 'https://git.example/o/p', 'p');"
    . "INSERT INTO pipeline (id, project_id, name) VALUES (1, 1, 'l');"
    . "INSERT INTO deployment (id, project_id, pipeline_id, `trigger`, status, epoch, started_at)"
    . " VALUES (1, 1, 1, 'manual', 'running', 1, NOW(3))");

# Lines of about 73 bytes, in chunks as the monitor writes them.
my ($lines, $size) = (0, 0);
while ($size < $mb * 1e6) {
	my $text = '';
	$text .= sprintf "\e[32m%09d\e[0m compiled src/part/%06d.c in %d ms, without a warning\n", ++$lines,
	    $lines % 1e6, $lines % 977 while length $text < 60_000;
	my ($hex, $n) = (unpack('H*', $text), $text =~ tr/\n//);
	$db->sql('INSERT INTO log_chunk (deployment_id, start, length, data, breaks, written_at)'
	    . " VALUES (1, $size, @{[length $text]}, X'$hex', $n, NOW(3))");
	$size += length $text;
}
$db->sql('INSERT INTO deployment_step (deployment_id, position, name, script, status, started_at,'
    . ' finished_at, log_offset, log_length, exit_code)'
    . " VALUES (1, 0, 'Build', 'make', 'success', NOW(3), NOW(3), 0, $size, 0);"
    . "UPDATE deployment SET status = 'success', finished_at = NOW(3), log_size = $size WHERE id = 1");
printf "%-52s %10.1f MB, %d lines\n", 'log', $size / 1e6, $lines;

my $page = Slipway::Browser->start(origin => $api->url);
$page->visit('/slipway/runners');
$page->cookie('__Host-slipway' => $api->new_session('ann', 'admin'));
$page->visit('/slipway/runners')->wait_for('h1', 'Runners'); # the modules are in the cache then

# The memory of the largest process that draws pages, without what it shares, in MiB.
sub memory {
	my $dir = tempdir();
	my @pages = grep { (slurp("$_/cmdline") // '') =~ /--type=renderer.*\Q$dir\E/ } glob '/proc/[0-9]*';
	my @kib = map { (slurp("$_/status") // '') =~ /^RssAnon:\s+(\d+)/m ? $1 : 0 } @pages;
	return (sort { $b <=> $a } @kib, 0)[0] / 1024;
}
printf "%-52s %10.1f MiB\n", 'memory of the tab before', memory();
my $last = sprintf '%09d', $lines;
my $began = time;
$page->visit('/slipway/deployments/1');
sub shows {
	my ($text) = @_;
	return $page->wait_until('[...document.querySelectorAll(".log-text")]'
	    . '.some((e) => e.textContent.includes(arguments[0]))', $text);
}
shows($last);
printf "%-52s %10.2f s\n", 'from the address to the last line', time - $began;
printf "%-52s %10.2f s\n", 'of these, after the request for the page',
    $page->js('return performance.now()') / 1000;

# Scrolls for some seconds and counts frames.
sub scroll {
	my ($name, $pixels) = @_;
	my $got = $page->js(<<'JS', $pixels);
		const pane = document.querySelector('.log-pane');
		return new Promise((done) => {
			const times = [];
			const step = (now) => {
				times.push(now);
				pane.scrollTop += arguments[0];
				if (now - times[0] < 4000)
					requestAnimationFrame(step);
				else {
					const gaps = times.slice(1).map((t, i) => t - times[i])
						.sort((a, b) => a - b);
					done([times.length / (now - times[0]) * 1000,
						gaps[Math.floor(gaps.length * 0.99)],
						document.querySelectorAll('.log-row').length]);
				}
			};
			requestAnimationFrame(step);
		});
JS
	printf "%-52s %10.1f frames a second, p99 of a frame %.0f ms, %d rows in the document\n",
	    $name, @$got;
	return;
}
scroll('scrolling up by 60 pixels a frame', -60);
scroll('scrolling up by 2000 pixels a frame', -2000);
scroll('scrolling down by 60 pixels a frame', 60);
$began = time;
$page->js('document.querySelector(".log-pane").focus()');
$page->press('g');
shows('000000001');
printf "%-52s %10.2f s\n", 'to the start', time - $began;
$began = time;
$page->press('/')->type('.log-search', $last);
$page->wait_for('.log-count', '1 of 1');
printf "%-52s %10.2f s\n", 'search for the last line', time - $began;
printf "%-52s %10.1f MiB\n", 'memory of the tab after', memory();
printf "%-52s %10.1f MiB\n", 'of this, JavaScript',
    $page->js('return performance.memory.usedJSHeapSize') / 2**20;
$page->stop;
ok(1, 'the figures are printed');
done_testing;
