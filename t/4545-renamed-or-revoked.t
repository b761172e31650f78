#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What the Git server knows and slipway does not: that a repository was renamed, or
# that a token was revoked.  The runner sends one request before it fetches; if a number
# is stored and the server does not confirm it, nothing is fetched.

use strict;
use warnings;
use MIME::Base64 qw(decode_base64);
use Slipway::DB;
use Slipway::Forge;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
$db->migrate;
$db->sql("INSERT INTO user (id, username, role) VALUES (1, 'ann', 'maintainer'), (2, 'eve', 'deployer')");
my ($forge, $runner, $service, $key, %base);

# Starts a runner with a Git server of this type, which knows ann and a robot.
sub begin {
	my ($type, %opt) = @_;
	$forge = Slipway::Forge->start(type => $type, rotates => 1);
	$forge->user($_->[0], { id => $_->[1] }) for ['ann', 7], ['eve', 8], ['robot', 9];
	$service = $forge->token('robot');
	$key = tempdir() . "/$type.key";
	my $file = spew(tempdir() . "/$type.conf", $db->conf . $forge->conf . "[secrets]\nkey_file = $key\n",
	    0600);
	ok(make_keys($file, $key), "$type: slipway-admin key creates the keys for secrets");
	%base = (file => $file);
	$runner = Slipway::Runner->start(db => $db, conf => conf(%opt));
	return;
}
sub conf {
	my (%more) = @_;
	return $forge->conf(report => 'no', allow_local => 'yes', %more)
	    . "[secrets]\nkey_file = $key\n[runner]\nslots = 4\n";
}
sub again { my (%more) = @_; $runner->write_conf(conf(%more)); $runner->restart; return }
sub end { is($runner->stop, 0, 'the runner stops'); $forge->stop; return }

# Stores a pair of tokens of ann for user 1, as after a sign-in.
sub sign_in {
	my ($access, $refresh) = $forge->token('ann', expires => 3600, refresh => 1);
	my ($status, $said, $err) = run_cmd(program('t/unit/access_probe'), $base{file}, 'put', 1,
	    $access, $refresh, 3600);
	is($status, 0, 'ann has signed in') or diag("$said$err");
	return $access;
}
sub deploy {
	my ($by, $project, $commit) = @_;
	my $user = defined $by ? $by : 'NULL';
	my $hash = defined $commit ? "'$commit'" : 'NULL';
	my $script = unpack 'H*', 'cat file; echo at $SLIPWAY_REPOSITORY';
	my $id =
	    $db->sql("START TRANSACTION; INSERT INTO deployment (project_id, pipeline_id, branch, `trigger`, "
	    . "created_by, commit_hash) VALUES ($project, $project, 'main', 'manual', $user, $hash);"
	    . "SET \@id = LAST_INSERT_ID(); INSERT INTO deployment_step (deployment_id, position, name, "
	        . "script, run_when)"
	    . " VALUES (\@id, 0, 's', CONVERT(UNHEX('$script') USING utf8mb4), 'success'); COMMIT; "
	        . "SELECT \@id");
	$runner->ring;
	return $id;
}
sub ends {
	my ($id, $end, $text, $name) = @_;
	is($runner->wait($id), $end, $name) or diag($runner->column($id, 'detail'), $runner->log($id));
	like($end eq 'success' ? $runner->log($id) : $runner->column($id, 'detail'), $text,
	    "$name: the log or detail matches");
	return $id;
}
# The stored id and path of a project's repository.
sub known {
	my ($project) = @_;
	my $row = $db->sql("SELECT repo_id, path FROM git_repo WHERE project_id = $project");
	return $row =~ s/\s+/ /gr =~ s/ $//r;
}
# The number of API requests, without those of git and for tokens.
sub questions {
	my $other = qr/git-upload-pack|info.refs|access_token|oauth.token/;
	return scalar grep { $_->{path} !~ $other } $forge->requests;
}
sub refreshes { return scalar grep { ($_->{body} || '') =~ /refresh_token/ } $forge->requests(qr/token$/) }
sub passwords {
	my %seen;
	for ($forge->requests(qr/git-upload-pack|info.refs/)) {
		my ($code) = ($_->{headers}{authorization} || '') =~ /^Basic (\S+)/i;
		$seen{ (split /:/, decode_base64($code), 2)[1] }++ if defined $code;
	}
	return join ' ', sort keys %seen;
}
sub repo {
	my ($path, $text, %opt) = @_;
	my $repo = $forge->repo($path, private => 1, users => [qw(ann robot)], %opt);
	$repo->commit('main', { file => "$text\n" }, $text);
	return $repo;
}

for my $type (qw(gitea gitlab github)) {
	begin($type);
	my $token = sign_in();
	my $n = $type;

	# --- renamed without notice
	my $site = repo('team/site', 'the site');
	my $p = $runner->project(repo => $site->clone_url);
	$forge->forget_requests;
	ends(deploy(1, $p), 'success', qr/^the site$/m, "$n: the original address");
	is(questions(), 1, "$n: a checkout sends one API request");
	is(known($p), $site->id . ' team/site', "$n: the id of the repository is stored");
	$site->rename('team/page');
	$forge->forget_requests;
	my $id = ends(deploy(1, $p), 'success', qr/^the site$/m, "$n: a renamed repository");
	is(questions(), 1, "$n: a checkout of a renamed repository sends one API request");
	like($runner->log($id), qr{^at \Q@{[$forge->url]}\E/team/page\.git$}m,
	    "$n: a renamed repository is fetched from its new address");
	is(known($p), $site->id . ' team/page', "$n: the new path is stored");
	like($runner->said, qr{its repository moved to \S+/team/page\.git},
	    "$n: the new address is logged");
	repo('team/site', 'another');
	ends(deploy(1, $p), 'success', qr/^the site$/m,
	    "$n: a renamed repository with another at its old path");
	$site->rename('team/home');
	ends(deploy(1, $p), 'success', qr/^the site$/m, "$n: a repository that was renamed again");
	# a user without access gets neither of them
	$id = ends(deploy(undef, $p), 'failed', qr/^There is no token for the Git server/,
	    "$n: a user without a token");
	unlike($runner->log($id), qr/^another$/m,
	    "$n: a user without a token does not get the repository at the old path");
	is(known($p), $site->id . ' team/home', "$n: the stored path does not change");

	# --- renamed before the first fetch: by a redirect of the server
	my $late = repo('team/late', 'late');
	my $q = $runner->project(repo => $late->clone_url =~ s/\.git$//r);
	$late->rename('team/later');
	$id = ends(deploy(1, $q), 'success', qr/^late$/m,
	    "$n: a repository renamed before the first checkout");
	like($runner->log($id), qr{^at \Q@{[$forge->url]}\E/team/later$}m,
	    "$n: the new address has the form of the old one");
	$late->rename('team/late');
	$id = ends(deploy(1, $q), 'success', qr/^late$/m, "$n: a repository renamed back");
	like($runner->log($id), qr{^at \Q@{[$forge->url]}\E/team/late$}m,
	    "$n: the address is the old one again");

	# --- public repositories: without a token
	my $open = repo('team/open', 'open', private => 0);
	my $o = $runner->project(repo => $open->clone_url);
	ends(deploy(undef, $o), 'success', qr/^open$/m, "$n: a public repository");
	$open->rename('team/opened');
	ends(deploy(undef, $o), 'success', qr/^open$/m, "$n: a renamed public repository")
	    if $type ne 'gitlab';
	my $usurper = repo('team/open', 'usurped', private => 0);
	is($runner->wait($id = deploy(undef, $o)), $type eq 'gitlab' ? 'failed' : 'success',
	    "$n: a renamed public repository with another at its old path ends as expected")
	    if $type ne 'gitlab';
	unlike($runner->log($id), qr/^usurped$/m, "$n: the repository at the old path is not fetched");

	# --- hidden repositories and a locked account: the detail explains them
	my $hidden = $runner->project(repo => repo('team/hidden', 'hidden', users => ['robot'])->clone_url);
	ends(deploy(1, $hidden), 'failed',
	    qr/^fatal.*\(The Git server knows no such repository, or .* may not see it\.\)$/,
	    "$n: a hidden repository");
	$forge->fault(qr{/(?:repos|repositories|projects)/}, kind => 'status', status => 403,
	    type => 'application/json',
		body => '{"message":"This account is prohibited from signing in"}');
	ends(deploy(1, $hidden), 'failed', qr/^fatal.*\(The Git server returned 403: .* locked there\.\)$/,
	    "$n: a locked account");
	$forge->clear_faults;

	# --- ssh: the repository is found, and no token is used
	my $s = $runner->project(repo => 'ssh://git@localhost:1/team/ssh.git');
	my $ssh = repo('team/ssh', 'by ssh');
	$ssh->rename('team/shell');
	$db->sql("INSERT INTO git_repo (project_id, server, repository, repo_id, path) VALUES ($s, "
	    . "'@{[$forge->url]}', 'ssh://git\@localhost:1/team/ssh.git', '@{[$ssh->id]}', 'team/ssh')");
	$id = deploy(1, $s);
	is($runner->wait($id), 'failed', "$n: a checkout by ssh fails, because nothing listens");
	like($runner->said,
	    qr{^.*\b$id\.\d+: its repository moved to ssh://git\@localhost:1/team/shell\.git}m,
	    "$n: the new address for ssh is found");
	unlike($runner->column($id, 'detail'), qr/token|sign in/i, "$n: the detail does not mention a token");
	is(known($s), $ssh->id . ' team/shell', "$n: the new path for ssh is stored");

	# --- the server does not confirm the stored id: the path is not enough
	my $path = sub {
		my ($to) = @_;
		return { kind => 'status', status => 200, body => sub {
			my $fields = join ',', map { qq("$_":"$to") } qw(full_name path_with_namespace);
			return qq({"id":$_[0],$fields});
		} };
	};
	my %odd = (
		'an error' => { kind => 'status', status => 500 },
		'rate limiting' => { kind => 'status', status => 429,
		    headers => { 'Retry-After' => 60 } },
		'an HTML page' => { kind => 'status', status => 200, type => 'text/html',
		    body => '<h1>Hello</h1>' },
		'a dropped connection' => { kind => 'drop' },
		$type eq 'gitea' ? ('no response' => { kind => 'silent' }) : (),
		'a path with ..' => $path->('team/../evil'),
		'a path with a query' => $path->('team/evil?x'),
		'a path with line breaks' => $path->('team/evil\\nuser\\nx'),
	);
	my %says = ('an error' => qr/^The Git server returned 500\. Nothing was fetched/,
		'rate limiting' => qr/^The Git server's rate limit is exceeded \(429\)\. Nothing/,
		'an HTML page' => qr/^The Git server returned an HTML page .*\. Nothing was fetched/,
		'a dropped connection' => qr/^(?:\S+ closed the connection|The Git server returned 502)\b/,
		'a path with line breaks' => qr/^The Git server returned a repository without/,
		'no response' => qr/did not respond in time\. Nothing was fetched/);
	my (%project, %unsure);
	for my $name (sort keys %odd) {
		my ($fault, $number) = ($odd{$name}, 900000 + keys %project);
		my $is_of = qr{/(?:repositories|projects)/$number$};
		$project{$name} = $runner->project(repo => $late->clone_url);
		$db->sql('INSERT INTO git_repo (project_id, server, repository, repo_id, path) '
		    . "VALUES ($project{$name}, '@{[$forge->url]}', '@{[$late->clone_url]}', "
		    . "'$number', 'team/late')");
		$forge->fault($is_of, %$fault, ref $fault->{body} ? (body => $fault->{body}->($number)) : ());
		$unsure{$name} = deploy(1, $project{$name});
	}
	for my $name (sort keys %odd) {
		ends($unsure{$name}, 'failed',
		    $says{$name} || qr/^The Git server's API did not confirm .*Retry/,
		    "$n: $name as response");
		is($runner->column($unsure{$name}, 'reason'), 'checkout_failed',
		    "$n: $name as response: the reason is checkout_failed");
		unlike($runner->log($unsure{$name}), qr/^late$/m, "$n: $name as response: no fetch");
		like(known($project{$name}), qr{^\d+ team/late$},
		    "$n: $name as response: the stored path does not change");
	}
	$forge->clear_faults;
	$forge->fault(qr{/(?:repos|repositories|projects)/}, kind => 'status', status => 502, times => 1);
	$id = ends(deploy(1, $q), 'success', qr{^late\nat \S+/team/late$}m,
	    "$n: a request that fails once is repeated");
	$forge->clear_faults;

	# --- what the clone has was confirmed when it was cloned
	if ($type eq 'gitea') {
		my $own = $runner->project(repo => $late->clone_url);
		$id = ends(deploy(1, $own), 'success', qr/^late$/m, 'a first deployment');
		my $commit = $runner->column($id, 'commit_hash');
		$forge->fault(qr{/(?:repos|repositories)/}, kind => 'status', status => 500);
		ends(deploy(1, $own, $commit), 'success', qr/^late$/m, 'a commit of the clone');
		ends(deploy(1, $own, '1' x 40), 'failed', qr/^The Git server returned 500\. Nothing/,
		    'another commit, without the server');
		ends(deploy(1, $own, $commit), 'success', qr/^late$/m, 'the clone, after that failure');
		$forge->clear_faults;
	}
	# --- a server that rejects the id or returns another repository
	my @json = (kind => 'status', status => 200, type => 'application/json', body => '');
	my %no = (
		'an unknown repository' => [
			qr/^The Git server does not show the repository .*404.*no access to it any more/,
			kind => 'status', status => 404, type => 'application/json',
			body => '{"message":"no"}' ],
		'another id' => [ qr/^Another repository has taken the name/, @json,
			body => '{"id":1,"full_name":"team/late","path_with_namespace":"team/late"}' ],
		'a locked account' => [ qr/^The Git server returned 403/, kind => 'status', status => 403,
		    type => 'application/json', body => '{"message":"no"}' ],
	);
	for my $name (sort keys %no) {
		my ($like, @fault) = @{ $no{$name} };
		$forge->fault(qr{/(?:repos|repositories|projects)/}, @fault);
		$id = ends(deploy(1, $q), 'failed', $like, "$n: $name as response");
		$forge->clear_faults;
		is($runner->column($id, 'reason'), 'checkout_failed',
		    "$n: $name as response: the reason is checkout_failed");
		unlike($runner->log($id), qr/^late$/m, "$n: $name as response: nothing is fetched");
		is(known($q), $late->id . ' team/late',
		    "$n: $name as response: the stored path does not change");
	}

	# --- a token that the server revoked before it expired
	my @both = map { $runner->project(repo => repo("team/both$_", "both $_")->clone_url) } 1, 2;
	$forge->expire_tokens('ann');
	$forge->forget_requests;
	my @ids = map { deploy(1, $_) } @both;
	ends($ids[$_ - 1], 'success', qr/^both $_$/m, "$n: a revoked token, deployment $_ of two") for 1, 2;
	is(refreshes(), 1, "$n: two deployments with a revoked token refresh it once");
	unlike(passwords(), qr/\Q$token\E/, "$n: git does not use the revoked token");
	is($db->sql('SELECT COUNT(*) FROM git_token WHERE user_id = 1 AND refresh_until IS NULL'), 1,
	    "$n: the new pair is stored");
	ends(deploy(1, $both[0]), 'success', qr/^both 1$/m, "$n: the deployment after a refresh");
	is(refreshes(), 1, "$n: the deployment after a refresh does not refresh again");

	# --- a revoked token that cannot be refreshed
	$forge->expire_tokens('ann');
	$forge->drop_refresh_tokens;
	$forge->forget_requests;
	$id = ends(deploy(1, $both[0]), 'failed', qr/sign in again/i, "$n: a token that cannot be refreshed");
	is($runner->column($id, 'reason'), 'checkout_failed',
	    "$n: a token that cannot be refreshed has the reason checkout_failed");
	is(refreshes(), 1, "$n: a token that cannot be refreshed is tried once");
	is(questions(), 1, "$n: a token that cannot be refreshed causes one API request");
	is($db->sql('SELECT COUNT(*) FROM git_token'), 0, "$n: a token that cannot be refreshed is deleted");
	ends(deploy(1, $both[0]), 'failed', qr/sign in again/i,
	    "$n: the deployment after the token was deleted");
	ends(deploy(1, $o), 'failed', qr/sign in again/i,
	    "$n: a public repository after the token was deleted");

	# --- with a token of the service
	again(token => $service);
	sign_in();
	$forge->expire_tokens('ann');
	$forge->drop_refresh_tokens;
	$forge->forget_requests;
	ends(deploy(1, $both[0]), 'failed', qr/sign in again/i,
	    "$n: a token that cannot be refreshed, while the service has one");
	ends(deploy(1, $both[0]), 'failed', qr/sign in again/i,
	    "$n: the next deployment, while the service has a token");
	is(passwords(), '', "$n: a user whose token was revoked does not use the service's token");
	ends(deploy(2, $both[0]), 'success', qr/^both 1$/m, "$n: a user without an account");
	is(passwords(), $service, "$n: a user without an account uses the service's token");
	$forge->expire_tokens('robot', $service);
	ends(deploy(undef, $both[0]), 'failed', qr/rejects the service's token/,
	    "$n: a revoked token of the service");
	sign_in();
	ends(deploy(1, $both[0]), 'success', qr/^both 1$/m,
	    "$n: a user who has signed in, while the service's token is revoked");

	# --- the server does not respond to a refresh
	if ($type eq 'gitlab') {
		$forge->expire_tokens('ann');
		$forge->fault(qr{oauth/token$}, kind => 'silent');
		ends(deploy(1, $both[0]), 'failed', qr/did not renew the token/,
		    "$n: no response to a refresh");
		is($db->sql('SELECT COUNT(*) FROM git_token'), 1,
		    "$n: a refresh without response keeps the pair");
		$forge->clear_faults;
		ends(deploy(1, $both[0]), 'success', qr/^both 1$/m,
		    "$n: the deployment after the server responds again");
	}
	is_deeply([grep { $_ !~ /no such/ } $forge->complaints], [],
	    "$n: the server received only valid requests");
	end();
	$db->sql('DELETE FROM git_token; DELETE FROM git_repo');
}
done_testing;
