#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A team's week, from the first push to the move to another service.  The Git server,
# the mail server, nginx, the runners and both databases are real.  Only the clock in
# Berlin is faked: tonight, daylight saving ends, and then it begins.

use strict;
use warnings;
use Cpanel::JSON::XS qw(decode_json);
use File::Path qw(make_path);
use MIME::Base64 qw(decode_base64);
use POSIX qw(strftime);
use Slipway::Certificate;
use Slipway::Forge;
use Slipway::Test;
use Slipway::Whole;
use Test::More;
use Time::Local qw(timegm);

my $can_fake = own_mounts();
my ($true, $false) = (Cpanel::JSON::XS::true, Cpanel::JSON::XS::false);
my $dir = tempdir();

# --- the place where the team works
make_front($dir);
my ($smtp, $https) = (free_port(), free_port());
my $mailbox = "$dir/received";
start_process({ name => 'receivers' }, '/usr/bin/python3', srcdir() . '/t/receivers.py', $smtp, $https,
	"$dir/cert.pem", "$dir/cert.key", $mailbox);
my $forge = Slipway::Forge->start(type => 'gitea');
$forge->user(bot => { id => 9 });
my $repo = $forge->repo('team/shop', private => 1, users => ['bot']);
$repo->commit('main', { version => "0\n" }, 'first');
my $conf = $forge->conf(token => scalar $forge->token('bot'))
    . "[mail]\nserver = localhost:$smtp\nsecurity = starttls\nuser = slipway\npassword = pass word\n"
    . "from = slipway\@example.org\ntls_ca = $dir/ca.pem\n[api]\nurl = https://slipway.example.org\n";
my $all = Slipway::Whole->start(api => $conf, runner => "$conf\[runner]\npoll = 60\n");
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
# Ann and Dora deploy, Bob maintains.
sub member {
	my ($of, $name, $role) = @_;
	$of->{tokens}{$name} = $of->new_token($role, $name);
	return $of->as($name);
}
my ($ann, $dora, $bob) = map { member($api, @$_) } [ ann => 'deployer' ], [ dora => 'deployer' ],
    [ bob => 'maintainer' ];
# The page of each environment, and a file for which a deployment waits.
my %site = map { $_ => $all->marks($_) } qw(staging production);
my $nights = $all->marks('nights');
my $hold = "$dir/hold";
sub visitor_sees { my ($environment) = @_; return slurp($site{$environment}) =~ s/\n\z//r }

my ($project, %pipeline, %environment);
# Pushes a version; the deployment that it starts.
sub pushed {
	my ($version) = @_;
	my $hash = $repo->commit_here('main', { version => "$version\n" }, "version $version");
	my $before = () = $forge->deliveries;
	my ($status, $said) = $repo->push(scalar $forge->token('bot'), 'main');
	is($status, 0, "version $version is pushed") or diag($said);
	poll(60, sub { my $now = () = $forge->deliveries; return $now > $before });
	my $answer = ($forge->deliveries)[-1];
	is($answer->{status}, 202, 'the Git server reports it') or diag(explain($answer));
	my $id = decode_json($answer->{body})->{data}[0]{id};
	is($all->show($id)->{commitHash}, $hash, 'a deployment of it is created');
	return $id;
}
sub ended {
	my ($id, $want, $name) = @_;
	my $end = $all->wait($id);
	is(join(' ', grep { defined } @$end{qw(status reason)}), $want, $name) or diag($all->log($id));
	return;
}
sub promoted { my ($as, $id) = @_; return $as->post("/api/deployments/$id/promote",
	{ environmentId => $environment{production} }) }
# Waits for a mail with this text in its subject; its body.
sub mail_says {
	my ($pattern, $name) = @_;
	my $text;
	my $arrives = sub {
		for my $mail (json_lines($mailbox)) {
			my ($head, $body) = split /\r\n\r\n/, $mail->{text}, 2;
			my $subject = join '', map { decode_base64($_) } $head =~ /=\?UTF-8\?B\?([\w+\/=]+)/g;
			next if "@{ $mail->{to} }" ne 'team@example.org' || $subject !~ $pattern;
			$text = decode_base64($body);
		}
		return defined $text;
	};
	ok(poll(120, $arrives), $name) or diag(slurp($mailbox) // 'no mail', tail($runner->said, 20));
	return $text // '';
}

subtest 'on Monday, the team prepares staging and production' => sub {
	$project = $bob->make('/api/projects', { name => 'shop', repository => $repo->clone_url,
		defaultBranch => 'main' })->{id};
	my $who = $bob->get('/api/auth/info')->{json}{id};
	for my $of ([ 'staging' ], [ production => approval => 'required', approvers => [$who] ]) {
		my ($name, @rules) = @$of;
		$environment{$name} = $bob->make('/api/environments', { projectId => $project, name => $name,
			variables => [ { key => 'SITE', value => $site{$name} } ], @rules })->{id};
	}
	%pipeline = map { my ($name, @steps) = @$_; $name => $bob->make('/api/pipelines',
		{ projectId => $project, name => $name, steps => \@steps })->{id} }
	    [ release => { name => 'check', script => '! grep broken version' },
		{ name => 'wait', script => "while test -e $hold; do sleep 0.1; done" },
		{ name => 'go live', script => 'cat version >"$SITE"' } ],
	    [ nightly => { name => 'report', script => "echo \$SLIPWAY_DEPLOYMENT_ID >>$nights" } ];
	is($bob->put("/api/projects/$project", { triggers => [ { branch => 'main',
		pipelineId => $pipeline{release}, environmentId => $environment{staging} } ] })->{status},
	    200, 'a push to main goes to staging');
	$bob->make('/api/notifiers', { projectId => $project, kind => 'mail', target => 'team@example.org',
		events => [qw(failed recovered waiting_for_approval locked)] });
	my $secret = $bob->put("/api/projects/$project/hook-secret")->{json}{secret};
	$forge->hook($repo, $api->url . "/api/hooks/$project", $secret, ca => $api->cacert);
};

my $first;
subtest 'the first version reaches production when the right person approves it' => sub {
	$first = pushed('1');
	ended($first, 'success', 'the push is deployed');
	is(visitor_sees('staging'), '1', 'staging shows it');
	my $got = promoted($ann, $first);
	is("$got->{status} $got->{json}{approval}", '201 required',
	    'Ann promotes it, which requires approval');
	my $id = $got->{json}{id};
	mail_says(qr/^shop: .*approval/, 'a mail asks the team');
	is($_->[1]->post("/api/deployments/$id/approve")->{status}, 403, "$_->[0] cannot approve it")
	    for [ Ann => $ann ], [ Dora => $dora ];
	is($all->show($id)->{status}, 'pending', 'it still waits');
	is(visitor_sees('production'), '', 'production shows nothing');
	is($bob->post("/api/deployments/$id/approve", { comment => 'go' })->{status}, 200, 'Bob approves it');
	ended($id, 'success', 'it is deployed');
	is(visitor_sees('production'), '1', 'production shows it');
};

my $second;
subtest 'on Tuesday, two pushes during a deployment become one' => sub {
	spew($hold, '');
	my $running = pushed('2');
	ok($all->saw($running, qr/^==> step 2: wait$/m), 'a deployment takes long');
	my $old = pushed('3');
	$second = pushed('4');
	unlink $hold;
	ended($old, 'canceled superseded', 'the older push is superseded');
	ended($running, 'success', 'the deployment that ran is not');
	ended($second, 'success', 'the newest push is deployed');
	is(visitor_sees('staging'), '4', 'staging shows it');
	my $id = promoted($ann, $second)->{json}{id};
	is($bob->post("/api/deployments/$id/approve")->{status}, 200, 'Bob approves its promotion');
	ended($id, 'success', 'it is deployed to production');
	is(visitor_sees('production'), '4', 'production shows it');
};

subtest 'on Wednesday, a mail reports the push that fails' => sub {
	my $id = pushed('broken');
	ended($id, 'failed step_failed', 'its check fails');
	like(mail_says(qr/^shop: deployment $id to staging failed/, 'a mail arrives'),
	    qr{^https://slipway\.example\.org/\S*\b$id\b}m, 'with a link to the deployment');
	is(visitor_sees('staging'), '4', 'staging shows the version before');
	ended(pushed('5'), 'success', 'the next push succeeds');
	mail_says(qr/^shop: .*succeeded again/, 'another mail says so');
};

# Whether the Git server has the statuses of all commits; makes those due that it has not.
sub is_reported {
	$db->sql('UPDATE commit_status SET next_at = NOW(3) WHERE open = 1 AND next_at > NOW(3)'
	    . ' AND held_until IS NULL');
	$runner->ring;
	return $db->sql('SELECT COUNT(*) FROM commit_status WHERE open = 1') == 0;
}
subtest 'on Thursday, an incident is over before the Git server is back' => sub {
	my $lock = "/api/projects/$project/lock";
	is($bob->put($lock, { reason => 'the checkout page is down' })->{status}, 200,
	    'Bob locks the project');
	mail_says(qr/^shop .*locked/, 'a mail says so');
	my $waiting = pushed('6');
	is($all->show($waiting)->{waitingFor}[0]{reason}, 'lock', 'a push waits');
	my $got = promoted($ann, $second);
	is("$got->{status} $got->{json}{code}", '409 locked', 'Ann cannot promote');
	like($got->{json}{detail}, qr/\bbob\b.*the checkout page is down/,
	    'the error says who locked it and why');
	$forge->stop_nginx;
	is($ann->get("/api/git/branches?projectId=$project")->{status}, 502, 'the Git server is down');
	$got = $ann->post("/api/environments/$environment{production}/rollback", { reason => 'incident' });
	is($got->{status}, 201, 'Ann rolls back nevertheless') or diag($got->{body});
	ended($got->{json}{id}, 'success', 'which needs neither the lock nor the server');
	is(visitor_sees('production'), '1', 'production shows the first version again');
	is($all->show($waiting)->{status}, 'pending', 'the push still waits');
	$forge->start_nginx;
	ok(poll(120, \&is_reported), 'the Git server is back and gets the status of the rollback');
	is($bob->delete($lock)->{status}, 204, 'Bob unlocks the project');
	ended($waiting, 'success', 'the push is deployed');
	is(visitor_sees('staging'), '6', 'staging shows it');
};

# --- the clock in Berlin
my $zones = "$dir/zones";
my ($change, $before, $after, $lead); # the change in seconds of UTC, both offsets, time that passed
sub write_zone {
	my @hms = map { my $n = abs $_;
		sprintf '%s%d:%02d:%02d', $_ < 0 ? '-' : '', $n / 3600, $n / 60 % 60, $n % 60;
	} $before + $lead, $after + $lead;
	my $until = strftime('%Y %b %d %H:%M:%Su', gmtime($change - $lead));
	my $source = spew("$dir/zone", "Zone Berlin $hms[0] - OLD $until\n $hms[1] - NEW\n");
	my ($status, undef, $err) = run_cmd({ umask => 022 }, 'zic', '-d', "$dir/compiled", $source);
	is($status, 0, 'a time zone is written') or diag($err);
	rename "$dir/compiled/Berlin", "$zones/Berlin" or die "$zones/Berlin: $!";
	return;
}
# Now a clock in Berlin shows that time, and tonight at `at` it is moved by so many hours.
sub tonight {
	my ($shows, $at, $hours) = @_;
	my ($now, $local, $moved) = (time, map { my ($h, $m) = split /:/; ($h * 60 + $m) * 60 } $shows, $at);
	$before = $local - $now % 86400;
	($change, $after, $lead) = ($now + $moved - $local, $before + $hours * 3600, 0);
	write_zone();
	return $now;
}
# Lets time pass in Berlin, which brings what is planned nearer.
sub passes {
	my ($minutes) = @_;
	$lead += 60 * $minutes;
	write_zone();
	$db->sql("UPDATE schedule SET next_at = next_at - INTERVAL $minutes MINUTE");
	$runner->ring;
	return;
}
my ($schedule, $plan);
sub planned { return $plan = $bob->get($schedule)->{json} }
# When the schedule is due next, in minutes after the clock was faked.
sub due_after {
	my ($start) = @_;
	my ($year, $month, @rest) = planned()->{nextAt} =~ /(\d+)/g;
	return (timegm(@rest[ 3, 2, 1, 0 ], $month - 1, $year) + $lead - $start) / 60;
}
sub fires {
	my ($name) = @_;
	my $last = planned()->{lastDeploymentId} // 0;
	ok(poll(120, sub { (planned()->{lastDeploymentId} // 0) > $last }), $name)
	    or diag(explain($plan), tail($runner->said, 20));
	return ended($plan->{lastDeploymentId}, 'success', 'its deployment succeeds');
}
sub plan_nightly {
	my ($cron) = @_;
	$schedule = '/api/schedules/' . $bob->make('/api/schedules', { name => 'nightly', cron => $cron,
		timezone => 'Europe/Berlin', projectId => $project, pipelineId => $pipeline{nightly},
		environmentId => $environment{staging} })->{id};
	return;
}

if ($can_fake) {
	make_path($zones);
	my ($status, undef, $err) = run_cmd('mount', '--bind', $zones, '/usr/share/zoneinfo/Europe');
	is($status, 0, 'the time zones of Europe are those of the test') or diag($err);

	subtest 'on the night when clocks are put back, a schedule fires once' => sub {
		my $start = tonight('02:10', '03:00', -1);
		plan_nightly('30 2 * * *');
		is(due_after($start), 20, 'it is 02:10, and the schedule is due at 02:30');
		passes(30);
		fires('at 02:40, it fires');
		is(due_after($start), 20 + 25 * 60, 'it is due again 25 hours after 02:30');
		passes(55);
		is(due_after($start), 20 + 25 * 60, 'not when it is 02:35 again');
	};
	subtest 'on the night when clocks are put forward, it fires once, too' => sub {
		my $start = tonight('01:50', '02:00', 1);
		$bob->put($schedule, { active => $_ }) for $false, $true;
		is(due_after($start), 10,
		    'it is 01:50, and the schedule is due at 03:00, as 02:30 does not exist');
		passes(20);
		fires('at 03:10, it fires');
		is(due_after($start), 10 + 23 * 60 + 30, 'it is due again at 02:30 of the next day');
	};
} else {
	subtest 'on the next night when clocks are put forward, a schedule fires once' => sub {
		my $year = 1901 + (gmtime)[5];
		my ($sunday) = grep { (gmtime timegm(0, 0, 0, $_, 2, $year))[6] == 0 } reverse 25 .. 31;
		plan_nightly("30 2 $sunday 3 *");
		is(planned()->{nextAt}, "$year-03-${sunday}T01:00:00.000Z",
		    'it is due at 03:00, as 02:30 does not exist');
		$db->sql('UPDATE schedule SET next_at = NOW(3)');
		$runner->ring;
		fires('when its time has come, it fires');
	};
}
is(() = slurp($nights) =~ /\n/g, $can_fake ? 2 : 1, 'the report has a line of each night');

subtest 'a week later, the project moves to a second service' => sub {
	my $second = Slipway::Whole->start(api => $conf, runner => $conf);
	my $other = member($second->api, bob => 'maintainer');
	my $document = $bob->get("/api/projects/$project/export")->{json};
	my $import = sub {
		my $got = $other->post('/api/projects/import', { document => $document, @_ });
		is($got->{status}, 200, 'an import is accepted') or diag($got->{body});
		my @items = map { "$_->{type}:$_->{action}" } @{ $got->{json}{items} };
		return ($got->{json}, join ' ', sort @items);
	};
	my ($got, $done) = $import->(dryRun => $true);
	is($done, join(' ', map { "$_:created" } qw(environment environment notifier pipeline pipeline
		project schedule)), 'a dry run lists what it would create');
	is($other->get('/api/projects')->{json}{pagination}{total}, 0, 'a dry run creates nothing');
	($got, my $now) = $import->();
	is($now, $done, 'the import creates that');
	is_deeply($got->{missing}, [], 'no secret is missing');
	my $copy = $got->{projectId};
	is_deeply($other->get("/api/projects/$copy/export")->{json}, $document,
	    'both services export the same');
	($got, $now) = $import->();
	is($now, $done =~ s/created/unchanged/gr, 'a second import changes nothing');
	my %to = map { $_->{name} => $_->{id} }
	    map { @{ $other->get("/api/$_?projectId=$copy")->{json}{data} } } qw(environments pipelines);
	spew($site{staging}, '', 0666);
	my $id = $other->make('/api/deployments', { projectId => $copy, pipelineId => $to{release},
		environmentId => $to{staging} })->{id};
	is($second->wait($id)->{status}, 'success', 'the second service deploys it')
	    or diag($second->log($id));
	is(visitor_sees('staging'), '6', 'staging shows the newest version');
	ok($second->is_clean, 'its jobs leave nothing');
};

ok($all->is_clean, 'the jobs leave nothing');
is_deeply([ $forge->complaints ], [], 'the Git server received only valid requests');
done_testing;
