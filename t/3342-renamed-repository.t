#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A project keeps its repository: if a stranger takes the name of a renamed one,
# neither reads nor deployments of the project use the stranger's repository.

use strict;
use warnings;
use Slipway::API qw(bearer);
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
	my $conf = sub { my (%more) = @_;
		return $f->conf(report => 'no', %more) . "[secrets]\nkey_file = $key\n" };
	my $file = spew(tempdir() . "/$type.conf", $db->conf . $conf->(), 0600);
	ok(make_keys($file, $key), 'slipway-admin key creates the keys for secrets');
	chmod 0640, $key;
	my $api = Slipway::API->start(db => $db, conf => $conf->());
	my $runner = Slipway::Runner->start(db => $db, conf => $conf->());
	my %role = (ann => 'maintainer', dan => 'deployer', eve => 'deployer', max => 'viewer');
	my %as = map { $_ => $api->new_token($role{$_}, $_) } sort keys %role;
	my %id = map { $_ => $db->sql("SELECT id FROM user WHERE username = '$_'") + 0 } keys %role;
	for my $who (qw(ann dan eve)) { # max has no account at the Git server
		my ($status, $out, $err) = run_cmd(program('t/unit/access_probe'), $file, 'put', $id{$who},
		    scalar $f->token($who), '-', 0);
		is($status, 0, "the token of $who is stored") or diag("$out$err");
	}
	my $get = sub {
		my ($who, $what, $p) = @_;
		return $api->get_in_time("/api/git/$what?projectId=$p", bearer($as{$who}));
	};
	my $reads = sub { # the first commit that a user sees, or the status
		my ($who, $p) = @_;
		my ($branches, $commits) = map { $get->($who, $_, $p) } qw(branches commits);
		is($branches->{status}, $commits->{status},
		    "$who gets the same status for branches and commits");
		return $commits->{status} == 200
		    ? $commits->{json}{data}[0]{message} =~ s/\n//r : $commits->{status};
	};
	my $known = sub { # the id and path that are stored
		my ($p) = @_;
		my $row = $db->sql("SELECT repo_id, path FROM git_repo WHERE project_id = $p");
		return $row =~ s/\s+/ /gr =~ s/ $//r;
	};
	my $project = sub {
		my ($repo) = @_;
		my $p = $runner->project(repo => $repo->clone_url);
		is($known->($p), '', 'a new project has no stored repository');
		return $p;
	};
	my $deploy = sub { # the log of the deployment, or its error
		my ($who, $p) = @_;
		my $by = defined $who ? $id{$who} : 'NULL';
		my $id = $db->sql('START TRANSACTION;'
		    . ' INSERT INTO deployment (project_id, pipeline_id, branch, `trigger`, created_by)'
		    . " VALUES ($p, $p, 'main', 'manual', $by); SET \@id = LAST_INSERT_ID();"
		    . ' INSERT INTO deployment_step (deployment_id, position, name, script, run_when)'
		    . " VALUES (\@id, 0, 's', 'cat file', 'success'); COMMIT; SELECT \@id");
		$runner->ring;
		my $end = $runner->wait($id);
		return $runner->log($id) if $end eq 'success';
		my ($reason, $detail) = map { $runner->column($id, $_) } qw(reason detail);
		return "$end $reason: $detail\n" . $runner->log($id);
	};
	my $make = sub {
		my ($path, $text, %opt) = @_;
		my $repo = $f->repo($path, private => 1, %opt);
		$repo->commit('main', { file => "$text\n" }, $text);
		return $repo;
	};

	# --- only a maintainer's read stores the id of the repository
	my $site = $make->('team/site', 'ours', users => ['ann', 'dan']);
	my $p = $project->($site);
	is($reads->('dan', $p), 'ours', 'a deployer reads the repository');
	like($deploy->('dan', $p), qr/^ours$/m, 'a deployer deploys the repository');
	is($known->($p), '', 'a deployer does not store the id of the repository');
	my $low = $api->make('/api/auth/tokens', { name => 'low', role => 'viewer' },
	    bearer($as{ann}))->{token};
	is($api->get_in_time("/api/git/branches?projectId=$p", bearer($low))->{status}, 200,
	    "a maintainer's token with the role viewer reads the repository");
	is($known->($p), '',
	    "a maintainer's token with the role viewer does not store the id of the repository");
	is($reads->('ann', $p), 'ours', 'a maintainer reads the repository');
	is($known->($p), $site->id . ' team/site', "a maintainer's read stores the id of the repository");

	# --- the organization is renamed, and a stranger takes its name
	$site->rename('crew/site');
	my $trap = $make->('team/site', 'a trap', users => ['eve']);
	is($reads->('eve', $p), 404,
	    "the stranger's read of the project does not return the stranger's repository");
	my $told = $get->('eve', 'branches', $p)->{json}{detail};
	like($told, qr/renamed or removed.*a maintainer must send the project's repository again/,
	    'the stranger gets advice');
	is($known->($p), $site->id . ' team/site', "the stranger's read does not change the stored id");
	like($deploy->('eve', $p), qr/^failed checkout_failed: Another repository has taken the name/,
	    "the stranger's deployment fails");
	unlike($deploy->('eve', $p), qr/^a trap$/m,
	    "the stranger's deployment does not run the stranger's repository");
	is($known->($p), $site->id . ' team/site', "the stranger's deployment does not change the stored id");
	is($reads->('dan', $p), 'ours', 'a deployer reads the renamed repository');
	like($deploy->('dan', $p), qr/^ours$/m, 'a deployer deploys the renamed repository');
	is($known->($p), $site->id . ' team/site', 'a deployer does not change the stored path');
	like($deploy->('ann', $p), qr/^ours$/m, 'a maintainer deploys the renamed repository');
	is($known->($p), $site->id . ' crew/site', "a maintainer's deployment stores the new path");

	# --- public repositories, and users without an account
	$trap->private(0);
	is($reads->('max', $p), 404, 'a user without an account gets 404 for a private repository');
	my $open = $make->('team/open', 'open', private => 0, users => ['ann']);
	my $o = $project->($open);
	is($reads->('ann', $o), 'open', 'a maintainer reads a public repository');
	$open->rename('crew/open');
	is($reads->('max', $o), 'open',
	    'a user without an account follows the redirect of a renamed repository');
	$make->('team/open', 'an open trap', private => 0, users => ['eve']);
	is($reads->('max', $o), 404, 'a user without an account gets 404 once a stranger has the name');
	like($get->('max', 'branches', $o)->{json}{detail}, qr/Another repository .*has taken the name/,
	    'the error says that another repository has the name') if $type ne 'gitlab';
	unlike($deploy->('max', $o), qr/^an open trap$/m,
	    "a deployment of a user without an account does not run the stranger's repository");
	unlike($deploy->(undef, $o), qr/^an open trap$/m,
	    "a deployment without a user does not run the stranger's repository");
	like($deploy->('dan', $o), qr/^open$/m, 'a deployer deploys the renamed repository by its id');
	is($known->($o), $open->id . ' team/open',
	    'deployments of a renamed repository do not change the stored id');

	# --- the service's own token follows a rename; 404 proves nothing
	my $ours = $make->('team/both', 'both', users => ['ann', 'bot']);
	my $b = $project->($ours);
	$runner->stop;
	$api->stop;
	my $token = $f->token('bot');
	$api = Slipway::API->start(db => $db, conf => $conf->(token => $token));
	%as = (%as, map { $_ => $api->new_token($role{$_}, "$_-2") } 'max'); # without an account
	is($reads->('max', $b), 'both', "the service's token reads the repository");
	is($known->($b), $ours->id . ' team/both', "a read with the service's token stores the id");
	$ours->rename('crew/both');
	is($reads->('max', $b), 'both', "the service's token reads a renamed repository");
	is($known->($b), $ours->id . ' crew/both', "a read with the service's token stores the new path");
	$f->store->change(sub { delete $_[0]{repos}{ $ours->id }{users} });
	$make->('team/both', 'third trap', private => 0, users => ['eve']);
	$make->('crew/both2', 'x', private => 0, users => ['eve'])->rename('crew/both');
	is($reads->('max', $b), 404, 'a repository that the service can no longer read returns 404');
	is($known->($b), $ours->id . ' crew/both',
	    'a repository that the service can no longer read keeps its stored id');
	is($api->put("/api/projects/$b", { repository => $f->url . '/team/both' })->{status}, 200,
	    'a maintainer changes the repository of the project');
	is($reads->('max', $b), 'third trap', 'a read uses the new repository');
	is_deeply([grep { $_ !~ /no such/ } $f->complaints], [],
	    'every request to the Git server was well-formed');
	$api->stop;
	$f->stop;
	$db->stop;
	return;
}
