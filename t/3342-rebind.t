#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A project keeps its repository: a stranger who takes the name of one that was
# renamed gets neither readers nor deployments led to his own, whoever asks.

use strict;
use warnings;
use Slipway::API;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

for my $type (@ARGV ? @ARGV : qw(gitea gitlab github)) {
	subtest $type => sub { attack($type) };
}
done_testing;

sub attack {
	my ($type) = @_;
	my $db = Slipway::DB->start;
	my $f = Slipway::Forge->start(type => $type);
	$f->user($_) for qw(ann dan eve bot);
	my $key = tempdir() . "/$type.key";
	my $conf = sub { my (%more) = @_; return $f->conf(report => 'no', %more) . "[secrets]\nkey_file = $key\n" };
	my $file = spew(tempdir() . "/$type.conf", $db->conf . $conf->(), 0600);
	my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $file, 'key');
	is($status, 0, 'a key') or diag("$out$err");
	chown 0, (getpwnam 'nobody')[3], $key if is_root();
	chmod 0640, $key;
	my $api = Slipway::API->start(db => $db, conf => $conf->());
	my $runner = Slipway::Runner->start(db => $db, conf => $conf->());
	my %role = (ann => 'maintainer', dan => 'deployer', eve => 'deployer', max => 'viewer');
	my %as = map { $_ => $api->new_token($role{$_}, $_) } sort keys %role;
	my %id = map { $_ => $db->sql("SELECT id FROM user WHERE username = '$_'") + 0 } keys %role;
	for my $who (qw(ann dan eve)) { # max has no account at the Git server
		($status, $out, $err) = run_cmd(program('t/unit/access_probe'), $file, 'put', $id{$who}, scalar $f->token($who), '-', 0);
		is($status, 0, "$who has signed in") or diag("$out$err");
	}
	my $get = sub { my ($who, $what, $p) = @_; return $api->get("/api/git/$what?projectId=$p", { Authorization => "Bearer $as{$who}" }) };
	my $reads = sub { # the first commit that somebody is shown, or the status
		my ($who, $p) = @_;
		my ($branches, $commits) = map { $get->($who, $_, $p) } qw(branches commits);
		is($branches->{status}, $commits->{status}, "$who: branches and commits alike");
		return $commits->{status} == 200 ? $commits->{json}{data}[0]{message} =~ s/\n//r : $commits->{status};
	};
	my $known = sub { return $db->sql("SELECT repo_id, path FROM git_repo WHERE project_id = $_[0]") =~ s/\s+/ /gr =~ s/ $//r };
	my $project = sub { # with a pipeline of the same number, as the runner's are
		my ($repo) = @_;
		my $p = $runner->project(repo => $repo->clone_url);
		is($known->($p), '', 'nothing is known of a new project');
		return $p;
	};
	my $deploy = sub { # its log, or what was wrong
		my ($who, $p) = @_;
		my $by = defined $who ? $id{$who} : 'NULL';
		my $id = $db->sql("START TRANSACTION; INSERT INTO deployment (project_id, pipeline_id, branch, `trigger`, created_by) VALUES ($p, $p, 'main', 'manual', $by);"
		    . "SET \@id = LAST_INSERT_ID(); INSERT INTO deployment_step (deployment_id, position, name, script, run_when)"
		    . " VALUES (\@id, 0, 's', 'cat file', 'success'); COMMIT; SELECT \@id");
		$runner->ring;
		my $end = $runner->wait($id);
		return $end eq 'success' ? $runner->log($id) : "$end " . $runner->column($id, 'reason') . ': ' . $runner->column($id, 'detail') . "\n" . $runner->log($id);
	};
	my $make = sub {
		my ($path, $text, %opt) = @_;
		my $repo = $f->repo($path, private => 1, %opt);
		$repo->commit('main', { file => "$text\n" }, $text);
		return $repo;
	};

	# --- who may say which repository it is
	my $site = $make->('team/site', 'ours', users => ['ann', 'dan']);
	my $p = $project->($site);
	is($reads->('dan', $p), 'ours', 'a deployer reads it');
	like($deploy->('dan', $p), qr/^ours$/m, 'and deploys it');
	is($known->($p), '', 'which says nothing for others');
	my $low = $api->post('/api/auth/tokens', { name => 'low', role => 'viewer' }, { Authorization => "Bearer $as{ann}" })->{json}{token};
	is($api->get("/api/git/branches?projectId=$p", { Authorization => "Bearer $low" })->{status}, 200, 'a token that may only read, of a maintainer');
	is($known->($p), '', 'says nothing either');
	is($reads->('ann', $p), 'ours', 'a maintainer reads it');
	is($known->($p), $site->id . ' team/site', 'by which its number is known');

	# --- the organization is renamed, and a stranger takes its name
	$site->rename('crew/site');
	my $trap = $make->('team/site', 'a trap', users => ['eve']);
	is($reads->('eve', $p), 404, 'the stranger is not shown his own repository');
	my $told = $get->('eve', 'branches', $p)->{json}{detail};
	like($told, qr/renamed or removed.*a maintainer must send the project's repository again/, 'and hears what could be done');
	is($known->($p), $site->id . ' team/site', 'nor has that changed what is known');
	like($deploy->('eve', $p), qr/^failed checkout_failed: The repository was renamed or removed/, 'he deploys neither');
	unlike($deploy->('eve', $p), qr/^a trap$/m, 'least of all his own');
	is($known->($p), $site->id . ' team/site', 'nothing of which changes what is known');
	is($reads->('dan', $p), 'ours', 'others find the renamed one');
	like($deploy->('dan', $p), qr/^ours$/m, 'and deploy it');
	is($known->($p), $site->id . ' team/site', 'a deployer does not change where it is, either');
	like($deploy->('ann', $p), qr/^ours$/m, 'a maintainer deploys the renamed one');
	is($known->($p), $site->id . ' crew/site', 'and her deployment says where it is now');

	# --- the same open to all, for those who have no account there
	$trap->private(0);
	is($reads->('max', $p), 404, 'anybody is shown nothing of what is private');
	my $open = $make->('team/open', 'open', private => 0, users => ['ann']);
	my $o = $project->($open);
	is($reads->('ann', $o), 'open', 'one that is open to all');
	$open->rename('crew/open');
	is($reads->('max', $o), 'open', 'anybody finds it where the server sends on');
	$make->('team/open', 'an open trap', private => 0, users => ['eve']);
	is($reads->('max', $o), 404, 'anybody is not led to what has its name');
	like($get->('max', 'branches', $o)->{json}{detail}, qr/Another repository has taken the name/, 'which is said') if $type ne 'gitlab';
	unlike($deploy->('max', $o), qr/^an open trap$/m, 'nor is a deployment of somebody without an account');
	unlike($deploy->(undef, $o), qr/^an open trap$/m, 'nor one of nobody in particular');
	like($deploy->('dan', $o), qr/^open$/m, 'by number it is found');
	is($known->($o), $open->id . ' team/open', 'all of that changes nothing');

	# --- the service's own token: it sees a rename, but a refusal proves nothing
	my $ours = $make->('team/both', 'both', users => ['ann', 'bot']);
	my $b = $project->($ours);
	$runner->stop;
	$api->stop;
	my $token = $f->token('bot');
	$api = Slipway::API->start(db => $db, conf => $conf->(token => $token));
	%as = (%as, map { $_ => $api->new_token($role{$_}, "$_-2") } 'max'); # without an account there
	is($reads->('max', $b), 'both', 'as the service it is read');
	is($known->($b), $ours->id . ' team/both', 'which says its number');
	$ours->rename('crew/both');
	is($reads->('max', $b), 'both', 'renamed it is found');
	is($known->($b), $ours->id . ' crew/both', 'and where it is');
	$f->store->change(sub { delete $_[0]{repos}{ $ours->id }{users} });
	$make->('team/both', 'third trap', private => 0, users => ['eve']);
	$make->('crew/both2', 'x', private => 0, users => ['eve'])->rename('crew/both');
	is($reads->('max', $b), 404, 'one that the service may not see any more');
	is($known->($b), $ours->id . ' crew/both', 'stays what it is');
	is($api->put("/api/projects/$b", { repository => $f->url . '/team/both' })->{status}, 200, 'a maintainer writes another address');
	is($reads->('max', $b), 'third trap', 'which holds');
	is_deeply([grep { $_ !~ /no such/ } $f->complaints], [], 'nothing was sent that the server would not take');
	$api->stop;
	$f->stop;
	$db->stop;
	return;
}
