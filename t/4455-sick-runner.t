#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A runner that cannot start anything gives back what it claimed, says that it is sick,
# and claims nothing until it has recovered; other runners take its work.

use strict;
use warnings;
use JSON::PP ();
use Slipway::Runner;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $dir = tempdir() . '/workspaces';
mkdir $dir or die "$dir: $!";
sub mount_small { return (run_cmd('mount', '-t', 'tmpfs', '-o', 'size=8m,mode=0755', 'none', $dir))[0] == 0 }
plan(skip_all => 'no file system can be mounted here') if !own_mounts() || !mount_small();

my $all = Slipway::Whole->start(runner => "[runner]\nslots = 4\n");
my ($api, $db, $healthy) = ($all->api, $all->db, $all->runner);
sub runners { return @{ $api->get('/api/runners')->{json}{data} } }
sub runner { my ($name) = @_; return (grep { $_->{name} eq $name } runners())[0] || {} }
sub is_sick { my ($name) = @_; return runner($name)->{sick} }
sub health { return $api->as('none')->get('/health')->{json} }
sub part { return (grep { $_->{name} eq 'runners' } @{ health()->{components} })[0] }
my @projects = map { $all->project($healthy->repo, name => "p$_") } 1 .. 6;
my @run = map { { projectId => $_, pipelineId => $all->pipeline($_, 'true') } } @projects;
sub post { my ($n) = @_; return $all->post(%{ $run[$n] }) }
sub statuses { return join ' ', map { $all->show($_)->{status} } @_ }
sub fill { return run_cmd('dd', 'if=/dev/zero', "of=$dir/fill", 'bs=4k') }
is($all->wait(post(0))->{status}, 'success', 'a deployment succeeds');
$healthy->stop;

# --- full workspaces, and no other runner
fill();
my $sick = Slipway::Runner->start(db => $db, workspaces => $dir, conf => $healthy->{conf});
my $name = $sick->{name};
ok(poll(30, sub { runner($name)->{online} }), 'a runner with full workspaces starts') or die;
ok(!is_sick($name), 'it does not know yet that it is sick');
my @ids = map { post($_) } 0 .. 5;
ok(poll(30, sub { is_sick($name) }), 'it is sick when it cannot start what it claimed') or die;
like(runner($name)->{sickReason}, qr/No space left on device/, 'it says why');
ok(runner($name)->{sickSince}, 'it says since when');
ok(poll(30, sub { statuses(@ids) eq join ' ', ('pending') x 6 }), 'what did not start is back on the queue');
is(health()->{status}, 'degraded', 'the service is degraded');
is_deeply([ @{ part() }{qw(status detail)} ], [ 'down',
    '1 of 1 runners that are online cannot start deployments: GET /api/runners says why.' ],
    'the health of the service counts the sick runner');
like($api->as('none')->get('/api/metrics')->{body}, qr/^slipway_runner_sick\{runner="\Q$name\E"\} 1$/m,
    'a metric shows the sick runner');
like($all->show($ids[0])->{waitingFor}[0]{detail} || '', qr/No space left on device/,
    'a deployment says why it waits');
my $claims = $db->sql('SELECT SUM(epoch) FROM deployment');
my $late = post(0);
ok(poll(10, sub { ($all->show($late)->{waitingFor}[0]{reason} || '') ne '' }), 'another deployment waits');
is($db->sql('SELECT SUM(epoch) FROM deployment'), $claims, 'a sick runner claims nothing');

# --- it remembers that it is sick
$sick->restart;
ok(poll(30, sub { runner($name)->{online} && is_sick($name) }), 'a sick runner that restarts is still sick');
is($db->sql('SELECT SUM(epoch) FROM deployment'), $claims, 'it claims nothing after a restart');

# --- a healthy runner beside it
$healthy->resume;
is(join(' ', map { $all->wait($_)->{status} } @ids, $late), join(' ', ('success') x 7),
    'a healthy runner takes the work of the sick one');
is_deeply([ grep { $all->show($_)->{runner} ne $healthy->{name} } @ids ], [], 'all of it');

# --- recovery
unlink "$dir/fill" or die "fill: $!";
kill HUP => $sick->pid;
ok(poll(60, sub { !is_sick($name) }), 'the runner recovers when there is space');
is(health()->{status}, 'ok', 'the service is healthy again');
$healthy->stop;
is($all->wait(post(1))->{runner}, $name, 'the runner runs deployments again');

# --- read-only workspaces
run_cmd('mount', '-o', 'remount,ro', $dir);
my $id = post(1);
ok(poll(30, sub { is_sick($name) }), 'a runner with read-only workspaces is sick');
like(runner($name)->{sickReason}, qr/Read-only file system/, 'it says that they are read-only');
ok(poll(30, sub { statuses($id) eq 'pending' }), 'the deployment waits');
run_cmd('mount', '-o', 'remount,rw', $dir);
is($all->wait($id, undef, 60)->{status}, 'success', 'it recovers by itself');

# --- a directory that cannot be used is the trouble of one project
SKIP: {
	skip 'only root can change owners', 5 if !is_root();
	my $place = $db->sql("SELECT project_dir FROM project WHERE id = $projects[5]");
	mkdir "$dir/$place";
	chown 12345, 12345, "$dir/$place" or die "chown: $!";
	my $failed = $all->wait(post(5));
	is("$failed->{status} $failed->{reason}", 'failed workspace_error',
	    'without another runner, a deployment fails if its directory cannot be used');
	ok(!is_sick($name), 'the runner is not sick then');
	is($all->wait(post(1))->{status}, 'success', 'it runs other deployments');
	$healthy->resume;
	ok(poll(30, sub { runner($healthy->{name})->{online} }), 'the healthy runner is online again');
	is($all->wait(post(5))->{runner}, $healthy->{name},
	    'another runner takes a deployment of that project');
}

# --- a checkout that the disk fails
$sick->stop;
$healthy->stop;
my $large = $healthy->repo({ large => join '', map { pack 'N', rand 2**32 } 1 .. 3 << 20 });
my $too_large = $all->project($large, name => 'large');
my %too_large = (projectId => $too_large, pipelineId => $all->pipeline($too_large, 'wc -c large'));
$sick->resume;
$id = $all->post(%too_large);
ok(poll(60, sub { $all->show($id)->{status} eq 'pending'
	&& ($all->show($id)->{waitingFor}[0]{detail} || '') =~ /disk of the runner failed the checkout/ }),
    'a deployment whose checkout does not fit returns to the queue') or diag($all->log($id));
ok(poll(60, sub { !is_sick($name) }), 'the runner recovers, for its disk has room again');
is($all->wait(post(1))->{status}, 'success', 'it runs other deployments');
$healthy->resume;
my $fits = $all->wait($id);
is("$fits->{status} $fits->{runner}", "success $healthy->{name}", 'another runner runs the deployment');
like($all->log($id), qr/^==> not started here: .*No space left on device.*^12582912 large$/ms,
    'its log has both tries') or diag($all->log($id));
$healthy->stop;
$id = $all->post(%too_large);
poll(60, sub { $db->sql("SELECT COUNT(*) FROM deployment_return WHERE deployment_id = $id") });
$db->sql("UPDATE deployment_return SET n = 5 WHERE deployment_id = $id");
my $never = $all->wait($id, undef, 60);
is("$never->{status} $never->{reason}", 'failed workspace_error', 'a repository that never fits ends');
like($never->{detail}, qr/Free space in \S+, or make its file system larger/, 'its detail says what to do');
is($never->{logSize}, length $all->log($id), 'its log is complete');
ok(poll(60, sub { !is_sick($name) }), 'the runner is well again');

# --- bounded
$sick->stop;
my $bound = post(2);
$db->sql("INSERT INTO deployment_return VALUES ($bound, 5, 'x', NOW(3))");
fill();
$sick->resume;
my $given = $all->wait($bound);
is("$given->{status} $given->{reason}", 'failed workspace_error',
    'a deployment is given back a bounded number of times');
like($given->{detail}, qr/No space left on device/, 'its detail says why it did not start');
$sick->stop;
END {
	if (defined $dir && -d $dir) {
		my $code = $?;
		run_cmd('umount', '-l', $dir);
		$? = $code;
	}
}
done_testing;
