#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# End to end for each kind of Git server: a new user signs in, creates a project with
# a private repository, and pushes; the event arrives through nginx, the runner clones
# with a token and runs the steps, and the commit gets its status.  A server on the
# same host may use plain HTTP.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Slipway::Forge;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $json = Cpanel::JSON::XS->new->utf8;
note(is_root() ? 'as root: steps run under their own accounts'
    : 'without root: steps run under the account of the test');

# The value of a failure on each kind of server.
my %failed = (gitea => 'failure', forgejo => 'failure', gitlab => 'failed', github => 'failure');

for my $case (@ARGV ? @ARGV : qw(gitea forgejo gitlab github plain)) {
	# the runner waits eight seconds for the Git server to describe a repository
	within(8, sub { subtest $case => sub { all_of_it($case eq 'plain' ? (gitea => 1) : ($case)) } });
}
done_testing;

sub all_of_it {
	my ($type, $plain) = @_;
	my $f = Slipway::Forge->start(type => $type, plain => $plain,
	    redirect_uri => 'https://slipway.example.org/login');
	$f->user(ann => { id => 7, name => 'Ann Lee', email => 'ann@example.org' });
	$f->user(bot => { id => 9 });
	my $repo = $f->repo('Team/site', private => 1, users => [qw(ann bot)]);
	my $own = $f->repo('ann/notes', private => 1, users => ['ann']);
	$_->commit('main', { version => "0\n" }, 'first') for $repo, $own;
	my $service = $f->token('bot');
	my $conf = $f->conf(token => $service) . "[auth]\nadmins = ann\n";
	my $all = Slipway::Whole->start(api => $conf, runner => "$conf\n[runner]\npoll = 60\n");
	my $api = $all->api;

	# --- signing in, as a browser does
	my %jar;
	my $visit = sub {
		my ($method, $path, $body) = @_;
		my $got = $api->as('none')->request($method, $path, $body, { Origin => $api->url,
			Cookie => join '; ', map { "$_=$jar{$_}" } sort keys %jar });
		my $set = $got->{headers}{'set-cookie'};
		for (ref $set ? @$set : defined $set ? $set : ()) { $jar{$1} = $2 if /^([^=]+)=([^;]*)/ }
		return $got;
	};
	my $made = sub {
		my ($path, $body) = @_;
		my $got = $visit->('POST', $path, $body);
		is($got->{status}, 201, "POST $path returns 201") or diag($got->{body});
		return $got->{json};
	};
	my $url = $visit->('GET', '/api/auth/url')->{json}{url};
	my $back = $f->authorize($url, 'ann');
	my $got = $visit->('POST', '/api/auth/login', { code => $back->{code}, state => $back->{state} });
	is($got->{status}, 200, 'the user signs in') or return diag($got->{body}, $api->log);
	is("$got->{json}{user}{username} $got->{json}{user}{role}", 'ann admin',
	    'the user has the role admin');
	my ($token) = $f->live_tokens('ann');
	my @secrets = ($token, $service, $back->{code}, $got->{json}{token});
	push @secrets, $f->client_secret if defined $f->client_secret;

	# --- a project with a pipeline and a trigger
	my $project = $made->('/api/projects',
	    { name => "Site at $type", repository => $repo->clone_url, defaultBranch => 'main' });
	my $seen = tempdir() . "/$type.seen"; # the first deployment waits until its status is seen
	my $pipeline = $made->('/api/pipelines', { projectId => $project->{id}, name => 'Go live', steps => [
		{ name => 'wait',
		    script => "for i in {1..6000}; do test -e $seen && exit; sleep 0.05; done; exit 1" },
		{ name => 'show', script => 'cat version; git log -1 --format=%s' },
		{ name => 'check', script => '! grep -q broken version' } ] });
	$got = $visit->('PUT', "/api/projects/$project->{id}",
	    { triggers => [{ branch => 'main', pipelineId => $pipeline->{id} }] });
	is($got->{status}, 200, 'a trigger is stored') or diag($got->{body});
	$got = $visit->('PUT', "/api/projects/$project->{id}/hook-secret");
	is($got->{status}, 200, 'a webhook secret is created') or diag($got->{body});
	push @secrets, $got->{json}{secret};
	$f->hook($repo, $api->url . "/api/hooks/$project->{id}", $got->{json}{secret}, ca => $api->cacert);
	$got = $visit->('GET', "/api/git/branches?projectId=$project->{id}");
	is_deeply([map { "$_->{name} $_->{commitHash}" } @{ $got->{json}{data} }],
	    ['main ' . $repo->tip('main')], 'the branches of the repository are listed');

	# --- pushes
	my $push = sub {
		my ($version, $message) = @_;
		my $hash = $repo->commit_here('main', { version => "$version\n" }, $message);
		my $before = my @before = $f->deliveries;
		my ($status, $said) = $repo->push(scalar $f->token('ann'), 'main');
		is($status, 0, "git push of $message") or diag($said);
		poll(15, sub { my @now = $f->deliveries; @now > $before });
		my $answer = ($f->deliveries)[-1];
		is($answer->{status}, 202, 'the push event is accepted')
		    or return diag(explain($answer), $api->log);
		if (!-e $seen) {
			ok(poll(20, sub { $f->statuses($hash) }), 'the commit gets a status');
			like(($f->statuses($hash))[0]{state}, qr/^(?:pending|running)$/,
			    'the first status is pending or running');
			spew($seen, '', 0644);
		}
		return ($hash, $all->wait($json->decode($answer->{body})->{data}[0]{id}));
	};
	my $states = sub {
		my ($hash, $end) = @_;
		poll(20, sub { my @s = $f->statuses($hash); @s && $s[-1]{state} eq $end });
		my @s = $f->statuses($hash);
		is($s[-1]{state}, $end, "the last status of the commit is $end")
		    or diag(explain(\@s), $all->db->sql('SELECT * FROM commit_status'));
		is(scalar(grep { $_->{state} !~ /^(?:pending|running|\Q$end\E)$/ } @s), 0,
		    'the commit has no other status');
		return $s[-1];
	};
	my ($hash, $end) = $push->(1, 'a good one');
	is("$end->{status} $end->{trigger} $end->{commitHash}", "success webhook $hash", 'a push is deployed')
	    or diag($all->log($end->{id}));
	like($all->log($end->{id}), qr/^1\na good one$/m,
	    'the deployment uses the access of the account that created the secret');
	my $status = $states->($hash, 'success');
	is($status->{context}, 'slipway/Go live', 'the status has the context of the pipeline');
	like($status->{target_url}, qr{^https://slipway\.example\.org/.*\b$end->{id}\b},
	    'the status has a link to the deployment');
	is($status->{creator}, 'bot', 'the service creates the status');
	my $other;
	($other, $end) = $push->('broken', 'a bad one');
	is("$end->{status} $end->{reason}", 'failed step_failed', 'a push that breaks a step fails');
	$states->($other, $failed{$type});

	# --- a deployment by a user
	my $notes = $made->('/api/projects',
	    { name => "Notes at $type", repository => $own->clone_url, defaultBranch => 'main' });
	my $simple = $made->('/api/pipelines', { projectId => $notes->{id}, name => 'Notes',
	    steps => [{ name => 'show', script => 'cat version' }] });
	$end = $all->wait($made->('/api/deployments',
	    { projectId => $notes->{id}, pipelineId => $simple->{id} })->{id});
	is($end->{status}, 'success', 'a user deploys a repository that the service cannot read')
	    or diag($all->log($end->{id}));
	is($states->($own->tip('main'), 'success')->{creator}, 'ann', 'the user creates the status');
	my $denied = $api->post('/api/deployments',
	    { projectId => $notes->{id}, pipelineId => $simple->{id} })->{json};
	$end = $all->wait($denied->{id});
	is("$end->{status} $end->{reason}", 'failed checkout_failed',
	    'a user without access cannot deploy the repository');

	# --- an expired token and a renamed repository
	if ($type ne 'github') { # whose tokens do not expire
		$f->expire_tokens('ann');
		$all->db->sql('UPDATE git_token SET expires_at = expires_at - INTERVAL 1 DAY');
	}
	$repo->rename('Team/page');
	$end = $all->wait($made->('/api/deployments',
	    { projectId => $notes->{id}, pipelineId => $simple->{id} })->{id});
	is($end->{status}, 'success', 'an expired token is refreshed')
	    or diag($all->log($end->{id}));
	($hash, $end) = $push->(2, 'after the renaming');
	is($end->{status}, 'success', 'a push to a renamed repository is deployed')
	    or diag($all->log($end->{id}));
	$states->($hash, 'success');

	# --- secrets
	is($visit->('POST', '/api/auth/logout')->{status}, 204, 'the user signs out');
	is($visit->('GET', '/api/auth/info')->{status}, 401, 'the session is invalid');
	my @logs = map { slurp($_) } grep { -f } glob tempdir() . '/{slipway,nginx}*.log';
	push @logs, map { $all->log($_) } split ' ', $all->db->sql('SELECT id FROM deployment');
	my $rows = join "\n", map { $all->db->sql("SELECT * FROM $_") }
	    qw(git_token hook_secret session signin commit_status project deployment);
	for my $secret (@secrets) {
		ok(!(grep { index($_, $secret) >= 0 } @logs), 'no log contains a secret') or diag($secret);
		ok(index($rows, $secret) < 0, 'the database contains no secret in plain text')
		    or diag($secret);
	}
	is_deeply([$f->complaints], [], 'the Git server received only valid requests');
	ok(!(grep { "$_->{full_path}?$_->{query_string}" =~ /\Q$token\E|\Q$service\E/ } $f->requests),
	    'no token is part of a URL');
	$_->stop for $api, $all->runner, $all->db;
	$f->stop;
	return;
}
