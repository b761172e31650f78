#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What the Git server knows and slipway was not told: that a repository has
# another name by now, or that a token works no more.  The runner asks once
# before it fetches; a server that does not answer that holds nothing up.

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

# A runner beside a Git server of that type, which knows ann and a robot.
sub begin {
	my ($type, %opt) = @_;
	$forge = Slipway::Forge->start(type => $type, rotates => 1);
	$forge->user($_->[0], { id => $_->[1] }) for ['ann', 7], ['eve', 8], ['robot', 9];
	$service = $forge->token('robot');
	$key = tempdir() . "/$type.key";
	my $file = spew(tempdir() . "/$type.conf", $db->conf . $forge->conf . "[secrets]\nkey_file = $key\n", 0600);
	ok(make_keys($file, $key), "$type: slipway-admin key creates the keys for secrets");
	%base = (file => $file);
	$runner = Slipway::Runner->start(db => $db, conf => conf(%opt));
	return;
}
sub conf {
	my (%more) = @_;
	return $forge->conf(report => 'no', allow_local => 'yes', %more) . "[secrets]\nkey_file = $key\n[runner]\nslots = 4\n";
}
sub again { my (%more) = @_; $runner->write_conf(conf(%more)); $runner->restart; return }
sub end { is($runner->stop, 0, 'the runner ends'); $forge->stop; return }

# A pair of ann's for user 1, as after signing in.
sub sign_in {
	my ($access, $refresh) = $forge->token('ann', expires => 3600, refresh => 1);
	my ($status, $said, $err) = run_cmd(program('t/unit/access_probe'), $base{file}, 'put', 1, $access, $refresh, 3600);
	is($status, 0, 'ann has signed in') or diag("$said$err");
	return $access;
}
sub deploy {
	my ($by, $project) = @_;
	my $user = defined $by ? $by : 'NULL';
	my $script = unpack 'H*', 'cat file; echo at $SLIPWAY_REPOSITORY';
	my $id = $db->sql("START TRANSACTION; INSERT INTO deployment (project_id, pipeline_id, branch, `trigger`, created_by) VALUES ($project, $project, 'main', 'manual', $user);"
	    . "SET \@id = LAST_INSERT_ID(); INSERT INTO deployment_step (deployment_id, position, name, script, run_when)"
	    . " VALUES (\@id, 0, 's', CONVERT(UNHEX('$script') USING utf8mb4), 'success'); COMMIT; SELECT \@id");
	$runner->ring;
	return $id;
}
sub ends {
	my ($id, $end, $text, $name) = @_;
	is($runner->wait($id), $end, $name) or diag($runner->column($id, 'detail'), $runner->log($id));
	like($end eq 'success' ? $runner->log($id) : $runner->column($id, 'detail'), $text, "$name: $end");
	return $id;
}
sub known { return $db->sql("SELECT repo_id, path FROM git_repo WHERE project_id = $_[0]") =~ s/\s+/ /gr =~ s/ $//r }
sub questions { return scalar grep { $_->{path} !~ /git-upload-pack|info.refs|access_token|oauth.token/ } $forge->requests }
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

	# --- renamed, and nobody said so
	my $site = repo('team/site', 'the site');
	my $p = $runner->project(repo => $site->clone_url);
	$forge->forget_requests;
	ends(deploy(1, $p), 'success', qr/^the site$/m, "$n: as it was");
	is(questions(), 1, 'for one question');
	is(known($p), $site->id . ' team/site', 'its number is kept');
	$site->rename('team/page');
	$forge->forget_requests;
	my $id = ends(deploy(1, $p), 'success', qr/^the site$/m, "$n: renamed");
	is(questions(), 1, 'for one question, too');
	like($runner->log($id), qr{^at \Q@{[$forge->url]}\E/team/page\.git$}m, 'from its new address');
	is(known($p), $site->id . ' team/page', 'which is kept');
	like($runner->said, qr{its repository is at \S+/team/page\.git by now}, 'and told in the log');
	repo('team/site', 'another');
	ends(deploy(1, $p), 'success', qr/^the site$/m, "$n: another has taken its name");
	$site->rename('team/home');
	ends(deploy(1, $p), 'success', qr/^the site$/m, "$n: renamed once more");
	# who may not see it gets neither of them
	$id = ends(deploy(undef, $p), 'failed', qr/^There is no token for the Git server/, "$n: for nobody there is none of it");
	unlike($runner->log($id), qr/^another$/m, 'nor what has its old name');
	is(known($p), $site->id . ' team/home', 'what is known stays');

	# --- renamed before it was ever fetched: where the server sends on
	my $late = repo('team/late', 'late');
	my $q = $runner->project(repo => $late->clone_url =~ s/\.git$//r);
	$late->rename('team/later');
	$id = ends(deploy(1, $q), 'success', qr/^late$/m, "$n: renamed before the first time");
	like($runner->log($id), qr{^at \Q@{[$forge->url]}\E/team/later$}m, 'its address is written as before');
	$late->rename('team/late');
	$id = ends(deploy(1, $q), 'success', qr/^late$/m, "$n: and back");
	like($runner->log($id), qr{^at \Q@{[$forge->url]}\E/team/late$}m, 'to where it was');

	# --- open to all: without any token
	my $open = repo('team/open', 'open', private => 0);
	my $o = $runner->project(repo => $open->clone_url);
	ends(deploy(undef, $o), 'success', qr/^open$/m, "$n: open to all");
	$open->rename('team/opened');
	ends(deploy(undef, $o), 'success', qr/^open$/m, 'renamed') if $type ne 'gitlab';
	my $usurper = repo('team/open', 'usurped', private => 0);
	is($runner->wait($id = deploy(undef, $o)), $type eq 'gitlab' ? 'failed' : 'success', 'with another in its place') if $type ne 'gitlab';
	unlike($runner->log($id), qr/^usurped$/m, 'which is not taken');

	# --- what she may not see, and an account that was locked: told in words
	my $hidden = $runner->project(repo => repo('team/hidden', 'hidden', users => ['robot'])->clone_url);
	ends(deploy(1, $hidden), 'failed', qr/^fatal.*\(The Git server knows no such repository, or .* may not see it\.\)$/, "$n: not hers");
	$forge->fault(qr{/(?:repos|repositories|projects)/}, kind => 'status', status => 403, type => 'application/json',
		body => '{"message":"This account is prohibited from signing in"}');
	ends(deploy(1, $hidden), 'failed', qr/^fatal.*\(The Git server answered 403: .* locked there\.\)$/, "$n: an account that was locked");
	$forge->clear_faults;

	# --- by ssh: no token goes there, but it is found
	my $s = $runner->project(repo => 'ssh://git@localhost:1/team/ssh.git');
	my $ssh = repo('team/ssh', 'by ssh');
	$ssh->rename('team/shell');
	$db->sql("INSERT INTO git_repo (project_id, server, repository, repo_id, path) VALUES ($s, '@{[$forge->url]}', 'ssh://git\@localhost:1/team/ssh.git', '@{[$ssh->id]}', 'team/ssh')");
	$id = deploy(1, $s);
	is($runner->wait($id), 'failed', "$n: nothing listens for ssh");
	like($runner->said, qr{^.*\b$id\.\d+: its repository is at ssh://git\@localhost:1/team/shell\.git by now}m, 'but its new address was found');
	unlike($runner->column($id, 'detail'), qr/token|sign in/, 'no token is missed');
	is(known($s), $ssh->id . ' team/shell', 'and kept');

	# --- answers that are none
	my @json = (kind => 'status', status => 200, type => 'application/json', body => '');
	my %odd = (
		'an error' => { kind => 'status', status => 500 },
		'too many questions' => { kind => 'status', status => 429, headers => { 'Retry-After' => 60 } },
		'a page' => { kind => 'status', status => 200, type => 'text/html', body => '<h1>Hello</h1>' },
		'a connection cut' => { kind => 'drop' },
		'a path that leads out' => { @json, body => sprintf('{"id":%d,"full_name":"team/../evil","path_with_namespace":"team/../evil"}', $late->id) },
		'a path with a query' => { @json, body => sprintf('{"id":%d,"full_name":"team/evil?x","path_with_namespace":"team/evil?x"}', $late->id) },
		'a path with more lines' => { @json, body => sprintf('{"id":%d,"full_name":"team/evil\\nuser\\nx","path_with_namespace":"team/evil\\nuser\\nx"}', $late->id) },
	);
	for my $name (sort keys %odd) {
		$forge->fault(qr{/(?:repos|repositories|projects)/}, %{ $odd{$name} });
		ends(deploy(1, $q), 'success', qr{^late\nat \S+/team/late$}m, "$n: $name for an answer");
		$forge->clear_faults;
	}
	# --- a server that says no to the number, or has another repository for it
	my %no = (
		'no such repository' => [ qr/^The repository was renamed or removed .*404.*a maintainer sends/, kind => 'status', status => 404,
			type => 'application/json', body => '{"message":"no"}' ],
		'another number' => [ qr/^Another repository has taken the name/, @json,
			body => '{"id":1,"full_name":"team/late","path_with_namespace":"team/late"}' ],
		'a locked account' => [ qr/^The Git server answered 403/, kind => 'status', status => 403, type => 'application/json', body => '{"message":"no"}' ],
	);
	for my $name (sort keys %no) {
		my ($like, @fault) = @{ $no{$name} };
		$forge->fault(qr{/(?:repos|repositories|projects)/}, @fault);
		$id = ends(deploy(1, $q), 'failed', $like, "$n: $name for an answer");
		$forge->clear_faults;
		is($runner->column($id, 'reason'), 'checkout_failed', 'at the checkout');
		unlike($runner->log($id), qr/^late$/m, 'and nothing was fetched');
		is(known($q), $late->id . ' team/late', 'what is known stays');
	}
	if ($type eq 'gitea') {
		$forge->fault(qr{/(?:repos|repositories)/}, kind => 'silent');
		ends(deploy(1, $q), 'success', qr/^late$/m, "$n: no answer at all");
		$forge->clear_faults;
	}

	# --- a token that the server has ended before its time
	my @both = map { $runner->project(repo => repo("team/both$_", "both $_")->clone_url) } 1, 2;
	$forge->expire_tokens('ann');
	$forge->forget_requests;
	my @ids = map { deploy(1, $_) } @both;
	ends($ids[$_ - 1], 'success', qr/^both $_$/m, "$n: revoked, two at once") for 1, 2;
	is(refreshes(), 1, 'refreshed once');
	unlike(passwords(), qr/\Q$token\E/, 'git was not given the old one');
	is($db->sql('SELECT COUNT(*) FROM git_token WHERE user_id = 1 AND refresh_until IS NULL'), 1, 'the new pair is stored');
	ends(deploy(1, $both[0]), 'success', qr/^both 1$/m, "$n: afterwards");
	is(refreshes(), 1, 'without another');

	# --- which will not be refreshed either
	$forge->expire_tokens('ann');
	$forge->drop_refresh_tokens;
	$forge->forget_requests;
	$id = ends(deploy(1, $both[0]), 'failed', qr/sign in again/, "$n: revoked for good");
	is($runner->column($id, 'reason'), 'checkout_failed', 'at the checkout');
	is(refreshes(), 1, 'one try');
	is(questions(), 1, 'and one question');
	is($db->sql('SELECT COUNT(*) FROM git_token'), 0, 'the token is forgotten');
	ends(deploy(1, $both[0]), 'failed', qr/sign in again/, "$n: the next time");
	ends(deploy(1, $o), 'failed', qr/sign in again/, "$n: nor does she get what is open to all");

	# --- with a token of the service
	again(token => $service);
	sign_in();
	$forge->expire_tokens('ann');
	$forge->drop_refresh_tokens;
	$forge->forget_requests;
	ends(deploy(1, $both[0]), 'failed', qr/sign in again/, "$n: revoked for good, beside the service");
	ends(deploy(1, $both[0]), 'failed', qr/sign in again/, "$n: and the next time");
	is(passwords(), '', 'whose token she is not given');
	ends(deploy(2, $both[0]), 'success', qr/^both 1$/m, "$n: one who has no account there gets it");
	is(passwords(), $service, 'as the service does');
	$forge->expire_tokens('robot', $service);
	ends(deploy(undef, $both[0]), 'failed', qr/does not accept the service's token/, "$n: that one revoked, too");
	sign_in();
	ends(deploy(1, $both[0]), 'success', qr/^both 1$/m, "$n: which does no harm to who has signed in");

	# --- the server is silent when it is to be refreshed
	if ($type eq 'gitlab') {
		$forge->expire_tokens('ann');
		$forge->fault(qr{oauth/token$}, kind => 'silent');
		ends(deploy(1, $both[0]), 'failed', qr/did not renew the token/, "$n: no answer to a refresh");
		is($db->sql('SELECT COUNT(*) FROM git_token'), 1, 'the pair is not lost');
		$forge->clear_faults;
		ends(deploy(1, $both[0]), 'success', qr/^both 1$/m, "$n: later");
	}
	is_deeply([grep { $_ !~ /no such/ } $forge->complaints], [], 'nothing was sent that the server would not take');
	end();
	$db->sql('DELETE FROM git_token; DELETE FROM git_repo');
}
done_testing;
