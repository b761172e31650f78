#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Directories of deleted projects: removed a day later, under the account that
# they belong to, by nothing that a link could lead astray.

use strict;
use warnings;
use File::Path qw(make_path);
use Slipway::DB;
use Slipway::Monitor;
use Slipway::Runner;
use Slipway::Spool;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(time);

note(is_root() ? 'as root: accounts of their own' : 'without root: privilege_drop = no');
my $outside = tempdir() . '/outside';
make_path($outside);
spew("$outside/keep", "keep\n", 0666);
chmod 0777, $outside;

# --- the monitor, asked by a dispatcher that may not be honest
my $repo = tempdir() . '/repo.git';
my ($status) = run_cmd('sh', '-ec', "git init -q -b main '$repo'; cd '$repo'; git config user.email a\@example.org;"
	. 'git config user.name a; echo hello >file; git add .; git commit -qm first');
is($status, 0, 'a repository');
my $m = Slipway::Monitor->start;
my $left = "$m->{workspaces}/.left";
sub wiped {
	my ($project, $dir) = @_;
	my $before = () = $m->out =~ /^wiped $project /mg;
	$m->command("wipe $project $dir");
	my @said;
	poll(10, sub { @said = $m->out =~ /^wiped $project 0 0 (\d+)/mg; @said > $before });
	return $said[-1];
}
my $mess = 'mkdir -p a/b/c; echo x >a/b/c/d; ln -s ' . $outside . ' a/out; ln -s ' . "$outside/keep" . ' a/keep;'
    . 'chmod 0 a/b/c; chmod 0500 a/b; chmod 0 .';
my $one = $m->job(repository => $repo, project => 7, dir => 'shop', steps => [$mess]);
is($m->exited($one), 0, 'a project leaves a mess');
my $deep = $m->job(repository => $repo, project => 8, dir => 'deep/er', steps => ['true']);
is($m->exited($deep), 0, 'another one further down');
my $busy = $m->job(repository => $repo, project => 9, dir => 'busy', steps => ['echo up; sleep 600']);
ok($m->started($busy) && poll(20, sub { job_log($busy) =~ /^up$/m }), 'and one that runs');

for my $dir ('..', '.', '../outside', '/etc', '.left', '.home', 'shop/..', '-x') {
	is(wiped(7, $dir), 1, "refused: $dir");
}
is(wiped(0, 'shop'), 1, 'refused: no project');
if (is_root()) {
	is(wiped(8, 'shop'), 0, 'a directory of another project');
	ok(-d "$m->{workspaces}/shop", '- stays');
	is(wiped(9, 'busy'), 1, 'not while its job runs');
	mkdir "$m->{workspaces}/roots" or die;
	is(wiped(7, 'roots'), 0, "one of root's");
	ok(-d "$m->{workspaces}/roots", '- stays');
	is(wiped(8, 'deep'), 0, 'one on the way to others');
	ok(-d "$m->{workspaces}/deep/er", '- stays');
}
symlink $outside, "$m->{workspaces}/link" or die;
is(wiped(7, 'link'), 0, 'a link');
is(wiped(7, 'link/keep'), 0, 'what is behind a link');
ok(-l "$m->{workspaces}/link" && -e "$outside/keep", '- both stay');
is(wiped(7, 'none/such'), 0, 'nothing is nothing to remove');
is(wiped(7, 'shop'), 0, 'its own directory');
ok(!-e "$m->{workspaces}/shop", '- is gone from its place at once');
is(wiped(8, 'deep/er'), 0, 'further down as well');
ok(poll(20, sub { !glob "$left/*" }), 'and soon altogether') or diag(`ls -laR $left`, $m->log);
is(slurp("$outside/keep"), "keep\n", 'no link was followed');
is((stat $left)[2] & 07777, 0700, 'nobody else gets at what is being removed');
$m->command("kill $busy->{id} 1");
ok(defined $m->exited($busy), 'the job is ended');
is($m->stop, 0, 'the monitor ends');

# --- what is there at a start
my $uid = $m->{uid_first} + 20;
sub entry {
	my ($name, @own) = @_;
	make_path("$left/$name/x/y");
	spew("$left/$name/x/file", 'x');
	symlink $outside, "$left/$name/x/link";
	run_cmd('chown', '-Rh', $uid, "$left/$name") if is_root() && !@own;
	return "$left/$name";
}
my $now = int(1000 * time);
my $past = entry('1.' . ($now - 1000));
my $future = entry('2.' . ($now + 3_600_000));
my $else = entry('of-somebody');
my $roots = entry('3.1', 'root');
symlink $outside, "$left/4.1" or die;
$m = Slipway::Monitor->start(dir => $m->{dir});
ok(poll(20, sub { !-e $past }), 'what is due goes when it starts');
if (is_root()) {
	ok(poll(10, sub { $m->log =~ m{4\.1: } }), 'a link is not opened');
	ok(-e "$roots/x/file", 'nothing is removed as root');
}
ok(-e "$future/x/file", 'what is not due stays');
ok(-e "$else/x/file", 'what has no time as well');
is(slurp("$outside/keep"), "keep\n", 'no link was followed');
$m->stop;

# --- by the queue
my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db);
my @projects = map { $runner->project(dir => "dir$_") } 0 .. 4;
for (@projects) { is($runner->wait($runner->deploy($_, 'echo mine >file')), 'success', "project $_ is deployed") }
my $broken = $runner->project(repo => tempdir() . '/no/such', dir => 'dir5');
is($runner->wait($runner->deploy($broken, 'true')), 'failed', 'one cannot be checked out');
sub dirs { return join ' ', sort map { m{([^/]+)$} } glob "$runner->{workspaces}/dir*" }
is(dirs(), 'dir0 dir1 dir2 dir3 dir4 dir5', 'each has a directory');
sub marks { return join ' ', sort map { m{objects\.(\d+)$} } glob "$runner->{spool}/objects.*" }
is(marks(), join(' ', @projects, $broken), 'the spool knows');
# 0 lives; 1 was deleted an hour ago, 2 and the broken one two days ago; 3 too, whose
# successor was never deployed; 4 as well, whose successor has been deployed
my ($live, $fresh, $old, $heir, $taken) = @projects;
sub gone { my ($id, $ago) = @_; $db->sql("UPDATE project SET valid = 0, updated_at = NOW(3) - INTERVAL $ago WHERE id = $id") }
gone($fresh, '1 HOUR');
gone($_, '2 DAY') for $old, $heir, $taken, $broken;
# one that others lie in by now, and one that lies in another's
my ($outer, $inner) = map { $runner->project(dir => $_) } 'tree', 'wood/in';
for ($outer, $inner) { is($runner->wait($runner->deploy($_, 'true')), 'success', "project $_ is deployed"); gone($_, '2 DAY') }
my ($within, $around) = map { $runner->project(dir => $_) } 'tree/in', 'wood';
is($runner->wait($runner->deploy($within, 'echo mine >file')), 'success', 'a project in the place of one that was deleted');
is($runner->wait($runner->deploy($around, 'mkdir in; echo mine >in/file')), 'success', 'and around another');
$runner->project(dir => 'dir3');
my $next = $runner->project(dir => 'dir4');
is($runner->wait($runner->deploy($next, 'ls; echo next >file')), 'success', 'a successor is deployed');
$runner->restart;
ok(poll(30, sub { dirs() eq 'dir0 dir1 dir4' }), 'those that are gone for a day go') or diag(dirs(), $runner->said);
ok(poll(10, sub { marks() eq join ' ', sort $live, $fresh, $next, $within, $around }),
    'and the spool forgets them') or diag(marks());
my @kept;
ok(poll(10, sub { @kept = glob "$runner->{workspaces}/.left/*"; @kept == 3 }), 'what made room for a successor is kept for a day') or diag("@kept");
is(slurp("$runner->{workspaces}/dir4/file"), "next\n", 'the successor keeps its own');
if (is_root()) {
	for (@kept) {
		my ($due) = /\.(\d+)$/;
		cmp_ok(abs($due / 1000 - time - 86400), '<', 600, '- and no longer');
	}
}
is(slurp("$runner->{workspaces}/$_"), "mine\n", "who lives has all of it: $_") for 'dir0/file', 'tree/in/file', 'wood/in/file';
$runner->stop;
done_testing();
