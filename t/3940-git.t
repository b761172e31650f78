#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Branches and commits of a project's repository, as the service reads them from
# Gitea, Forgejo, GitLab and GitHub, and with git alone.

use strict;
use warnings;
use JSON::PP ();
use Test::More;
use Slipway::API;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Sshd;
use Slipway::Test;

my $db = Slipway::DB->start;
my $named = 0;

sub project {
	my ($api, $repository, %more) = @_;
	my $got = $api->post('/api/projects', { name => 'p' . ++$named, repository => $repository, %more });
	is($got->{status}, 201, "a project with the repository $repository is created") or diag($got->{body});
	return $got->{json}{id};
}
sub escape { my ($text) = @_; return $text =~ s/([^A-Za-z0-9._~-])/sprintf '%%%02X', ord $1/ger }
# Sends GET /api/git/WHAT and returns the response.
sub ask {
	my ($api, $what, $project, %query) = @_;
	return $api->get_in_time("/api/git/$what?projectId=$project" . join '',
	    map { "&$_=" . escape($query{$_}) } sort keys %query);
}
# Reads all pages, by the Link header, and returns the items.
sub walk {
	my ($api, $what, $project, %query) = @_;
	my @all;
	my $got = ask($api, $what, $project, %query);
	for (my $page = 1; $page < 30; $page++) {
		is($got->{status}, 200, "$what: page $page returns 200") or (diag($got->{body}), return);
		is($got->{json}{pagination}{page}, $page, "$what: the response has the number of page $page");
		push @all, @{ $got->{json}{data} };
		my ($next) = ($got->{headers}{link} || '') =~ /<([^>]+)>; rel="next"/;
		is($got->{json}{pagination}{hasMore} ? 1 : 0, defined $next ? 1 : 0,
		    "$what: hasMore and Link agree on page $page");
		last if !defined $next;
		$got = $api->get($next);
	}
	return @all;
}
sub rejected {
	my ($got, $status, $detail, $name) = @_;
	is($got->{status}, $status, $name) or diag($got->{body});
	like($got->{json}{detail}, $detail, "$name: the detail gives the cause");
	return;
}

my @odd = ('feature/a', '100%', '100%25', 'c#d', 'x+y&z=1', "gr\xc3\xbcn", 'a;b', '...'x0 . "quote'd");
for my $type (qw(gitea forgejo gitlab github)) {
	note($type);
	my $f = Slipway::Forge->start(type => $type, $type =~ /^(?:gitea|forgejo)$/ ? (max_items => 3) : (),
	    $type eq 'gitea' ? (prefix => '/git') : ());
	$f->user(ann => { id => 7 });
	$f->user(bot => { id => 8 });
	my $repo = $f->repo('team/site', private => 1, users => ['bot'], protected => ['main']);
	my $token = $f->token('bot');
	my @hash = map { $repo->commit('main', { file => "$_\n" },
	    "Commit $_\n\nwith \"quotes\", \xc3\xbc and <b>\n") } 1 .. 8;
	$repo->branch($_, $hash[3]) for @odd;
	my $api = Slipway::API->start(db => $db, conf => $f->conf(token => $token));
	my $viewer = $api->as('viewer');
	my $p = project($api, $repo->clone_url);

	# --- branches
	is(ask($api->as('none'), 'branches', $p)->{status}, 401, 'branches need a token');
	my $got = ask($viewer, 'branches', $p, limit => 100);
	is($got->{status}, 200, 'a viewer may read branches') or diag($got->{body});
	is_deeply([sort map { $_->{name} } @{ $got->{json}{data} }],
	    [sort 'main', map { my $n = $_; utf8::decode($n); $n } @odd],
	    'all branches are listed, whatever their names');
	my ($main) = grep { $_->{name} eq 'main' } @{ $got->{json}{data} };
	is_deeply($main, { name => 'main', commitHash => $hash[7], protected => JSON::PP::true(),
	    default => JSON::PP::true() },
	    'a branch has its commit, its protection and whether it is the default');
	is(scalar(grep { $_->{protected} || $_->{default} } @{ $got->{json}{data} }), 1,
	    'the other branches are neither protected nor the default');
	is_deeply($got->{json}{pagination}, { page => 1, limit => 100, hasMore => JSON::PP::false() },
	    'a page that holds all branches has no next page');
	for my $limit (1, 2, 3, 4, 5, 7, 8, 20) {
		my @all = walk($viewer, 'branches', $p, limit => $limit);
		is_deeply([map { $_->{name} } @all], [map { $_->{name} } @{ $got->{json}{data} }],
		    "pages of $limit list the same branches");
	}
	my $beyond = ask($viewer, 'branches', $p, limit => 5, page => 40);
	is_deeply($beyond->{json},
	    { data => [], pagination => { page => 40, limit => 5, hasMore => JSON::PP::false() } },
	    'a page past the last branch is empty');

	# --- commits
	$got = ask($viewer, 'commits', $p, branch => 'main', limit => 100);
	is($got->{status}, 200, 'commits of a branch are read') or diag($got->{body});
	is_deeply([map { $_->{hash} } @{ $got->{json}{data} }], [reverse @hash],
	    'commits are listed newest first');
	my $newest = $got->{json}{data}[0];
	like($newest->{message}, qr/^Commit 8\n\nwith "quotes", \x{fc} and <b>/,
	    'a commit has its whole message');
	is("$newest->{authorName} $newest->{authorEmail}", 'Ann Author author@example.org',
	    'a commit has the name and email of its author');
	like($newest->{committedAt}, qr/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/, 'a commit has its time');
	like($newest->{url}, qr{^https://.*/commit/$hash[7]$}, 'a commit has the URL of its page');
	is(join(',', sort keys %$newest), 'authorEmail,authorName,committedAt,hash,message,url',
	    'a commit has no other members');
	for my $limit (1, 3, 5, 8) {
		is_deeply([map { $_->{hash} } walk($viewer, 'commits', $p, branch => 'main',
		    limit => $limit)], [reverse @hash],
		    "pages of $limit list the same commits");
	}
	is_deeply(ask($viewer, 'commits', $p, branch => 'main', page => 9)->{json}{data}, [],
	    'a page past the last commit is empty');
	is(ask($viewer, 'commits', $p)->{json}{data}[0]{hash}, $hash[7],
	    "without a branch the commits are those of the repository's default branch");
	for my $name (@odd) {
		$got = ask($viewer, 'commits', $p, branch => $name, limit => 2);
		is_deeply([map { $_->{hash} } @{ $got->{json}{data} || [] }], [@hash[3, 2]],
		    "commits of the branch $name are read") or diag($got->{body});
	}
	my $q = project($api, $repo->clone_url, defaultBranch => 'feature/a');
	is(ask($viewer, 'commits', $q)->{json}{data}[0]{hash}, $hash[3],
	    "without a branch the commits are those of the project's default branch");
	for my $name ('nothing', 'two words', '../../main', 'main?x=1', 'refs/heads/nothing', '-x') {
			rejected(ask($viewer, 'commits', $p, branch => $name), 404,
			    qr/404|Unknown branch|no such|not found/i,
		    "the unknown branch $name has no commits");
	}

	# --- empty, renamed, replaced and hidden repositories
	my $empty = $f->repo('team/empty', users => ['bot']);
	my $e = project($api, $empty->clone_url);
	for my $what (qw(branches commits)) {
		is_deeply(ask($viewer, $what, $e)->{json},
		    { data => [], pagination => { page => 1, limit => 20, hasMore => JSON::PP::false() } },
		    "an empty repository has no $what");
	}
	$empty->commit('trunk', { a => "1\n" }, 'first');
	is(ask($viewer, 'branches', $e)->{json}{data}[0]{name}, 'trunk',
	    'the first branch of an empty repository is listed');
	my $secret = $f->repo('team/secret', private => 1, users => ['ann']);
	$secret->commit('main', {}, 'hidden');
	rejected(ask($viewer, 'branches', project($api, $secret->clone_url)), 404, qr/404/,
	    "a repository that the service's account cannot see returns 404");
	rejected(ask($viewer, 'branches', project($api, $f->url . '/team/none.git')), 404, qr/404/,
	    'an unknown repository returns 404');

	is($db->sql("SELECT repo_id, path FROM git_repo WHERE project_id = $p") =~ s/\s+/ /gr =~ s/ $//r,
	    $repo->id . ' team/site',
	    'the id and path of a repository are stored');
	$repo->rename('team/new-site');
	is((grep { $_->{default} } @{ ask($viewer, 'branches', $p, limit => 100)->{json}{data}
	    || [] })[0]{commitHash}, $hash[7], 'branches of a renamed repository are read');
	like($db->sql("SELECT path FROM git_repo WHERE project_id = $p"), qr{^team/new-site$}m,
	    'the stored path follows a rename');
	my $usurper = $f->repo('team/site', users => ['bot']);
	$usurper->commit('main', {}, 'not it');
	is(ask($viewer, 'commits', $p)->{json}{data}[0]{hash}, $hash[7],
	    'a new repository at the old path does not replace the renamed one');
	my ($put) = $db->sql("SHOW GLOBAL STATUS LIKE 'Com_insert'") =~ /(\d+)/;
	ask($viewer, $_, $p) for qw(branches commits) x 3;
	is(($db->sql("SHOW GLOBAL STATUS LIKE 'Com_insert'") =~ /(\d+)/)[0], $put,
	    'a known repository causes no write to the database');
	$repo->remove;
		rejected(ask($viewer, $_, $p), 404, qr/was renamed or removed.*a maintainer must send/,
	    "a new repository at the old path does not replace a removed one: $_") for qw(branches commits);
	like($db->sql("SELECT repo_id, path FROM git_repo WHERE project_id = $p"),
	    qr{^@{[$repo->id]}\s+team/new-site$}m,
	    'the stored id and path stay after the repository is removed');
	is($api->put("/api/projects/$p", { repository => $usurper->clone_url =~ s/\.git$//r })->{status}, 200,
	    'the project gets the address of the new repository');
	is(ask($viewer, 'commits', $p)->{json}{data}[0]{message} =~ s/\n//r, 'not it',
	    'a changed address leads to the new repository');
	my $was = $f->repo('team/again', users => ['bot']);
	$was->commit('main', {}, 'was');
	my $again = project($api, $was->clone_url);
	is(ask($viewer, 'commits', $again)->{json}{data}[0]{message} =~ s/\n//r, 'was',
	    'a repository is read by its address');
	$was->remove;
	$f->repo('team/again', users => ['bot'])->commit('main', {}, 'is');
		rejected(ask($viewer, 'commits', $again), 404, qr/was renamed or removed/,
	    'a repository that was recreated at the same address is not the stored one');
	is($api->put("/api/projects/$again", { repository => $f->url . '/team/again' })->{status}, 200,
	    'the project confirms the address');
	is(ask($viewer, 'commits', $again)->{json}{data}[0]{message} =~ s/\n//r, 'is',
	    'a confirmed address leads to the recreated repository');

	# --- the repositories of the account
	my $more = $f->repo('group/other-site', users => ['bot']);
	$f->repo('team/foreign-site', private => 1, users => ['ann']);
	my $list = sub { return $api->get_in_time('/api/git/repositories?' . join '&', @_) };
	my $paths = sub { return join ' ', map { $_->{path} } @{ $list->(@_)->{json}{data} || [] } };
	like($paths->('limit=100'), qr{^group/other-site .*\bteam/site\b.*team/empty$},
	    'the repositories of the account are listed, the newest first');
	unlike($paths->('limit=100'), qr{secret|foreign},
	    'repositories that the account cannot see are not listed');
	is($paths->('search=OTHER'), 'group/other-site', 'a part of the name is found, in any case');
	is($paths->('search=group/o'), 'group/other-site',
	    'a search finds a part of the path with the owner');
	is($paths->('search=nothing'), '', 'a name that no repository has finds none');
	my ($site) = @{ $list->('search=other')->{json}{data} };
	is_deeply($site, { path => 'group/other-site', repository => $more->clone_url,
		defaultBranch => $site->{defaultBranch}, url => $f->url . '/group/other-site' },
	    'a repository has its name, address, default branch and page');
	my %listed = (name => "listed $type", repository => $site->{repository});
	is($api->post('/api/projects', \%listed)->{status}, 201,
	    'a project takes the listed address');
	my $whole = $paths->('limit=100', 'search=si');
	for my $limit (1, 2, 3) {
		my @all;
		for my $page (1 .. 9) {
			my $got = $list->("limit=$limit", "page=$page", 'search=si')->{json};
			push @all, map { $_->{path} } @{ $got->{data} };
			last if !$got->{pagination}{hasMore};
			is(scalar @{ $got->{data} }, $limit, "page $page of $limit repositories is full");
		}
		is(join(' ', @all), $whole, "pages of $limit list each repository once");
	}
	is($viewer->get('/api/git/repositories')->{status}, 403, 'a viewer adds no project and lists none');
	is($list->($_)->{status}, 400, "repositories with $_ return 400")
	    for 'limit=101', 'page=0', 'projectId=1', 'search=' . 'x' x 101;

	# --- invalid requests
	is($viewer->get('/api/git/branches')->{status}, 400, 'a request without a project returns 400');
		rejected(ask($viewer, 'branches', 999_999), 404, qr/^Unknown project\.$/,
		    'an unknown project');
	is(ask($viewer, 'branches', $p, @$_)->{status}, 400, "branches with @$_ return 400")
	    for [page => 0], [page => 'x'], [limit => 0], [limit => 101], [branch => 'x'];
	is(ask($viewer, 'commits', $p, branch => '')->{status} =~ /^(?:200|400)$/ ? 1 : 0, 1,
	    'an empty branch name returns 200 or 400');
	is(ask($viewer, 'commits', $p, branch => "a\nb")->{status} =~ /^4/ ? 1 : 0, 1,
	    'a branch name with a newline is rejected');
	is_deeply([$f->complaints], [], 'the server received only valid requests')
	    or diag(explain([$f->complaints]));
	$api->stop;
	$f->stop;
}

# --- git alone
{
	my $dir = tempdir() . '/bare';
	mkdir $dir, 0755;
	my %env = (GIT_CONFIG_NOSYSTEM => 1, GIT_CONFIG_GLOBAL => '/dev/null', HOME => $dir,
		map { ("GIT_${_}_NAME" => 'a', "GIT_${_}_EMAIL" => 'a@example.org') } qw(AUTHOR COMMITTER));
	my $git = sub {
		my ($status, $out, $err) = run_cmd({ env => \%env }, 'git', @_);
		die "git @_: $err" if $status != 0;
		return $out =~ s/\s+$//r;
	};
	$git->('init', '-q', '--bare', '-b', 'trunk', "$dir/$_") for qw(full empty headless);
	my $tree = $git->('-C', "$dir/full", 'mktree');
	my @hash = ($git->('-C', "$dir/full", 'commit-tree', '-m', 'one', $tree));
	$git->('-C', "$dir/full", 'update-ref', "refs/heads/$_", $hash[0])
	    for 'trunk', 'feature/x', map { "b$_" } 10 .. 30;
	$git->('-C', "$dir/headless", 'fetch', '-q', "$dir/full", 'trunk:other');
	run_cmd('chmod', '-R', 'a+rX', $dir);
	for my $case (["type = git\n", 'no Git server'],
	    ["type = git\nurl = https://git.example.org\n", 'a Git server without an API'],
		["type = gitea\nurl = https://git.example.org\n", 'a repository on another server']) {
		my ($conf, $name) = @$case;
		note($name);
		my $api = Slipway::API->start(db => $db, conf => "[gitserver]\n${conf}allow_local = yes\n");
		my $p = project($api, "$dir/full");
		my @all = walk($api, 'branches', $p, limit => 10);
		is(scalar @all, 23, "$name: all branches are listed");
		is_deeply([grep { $_->{default} } @all],
		    [{ name => 'trunk', commitHash => $hash[0], default => JSON::PP::true(),
			protected => JSON::PP::false() }], "$name: the default branch is marked");
		is_deeply(ask($api, 'branches', $p, page => 9)->{json}{data}, [],
		    "$name: a page past the last branch is empty");
		my $tip = { hash => $hash[0],
		    map { ($_ => undef) } qw(message authorName authorEmail committedAt url) };
		is_deeply(ask($api, 'commits', $p)->{json}{data}, [$tip],
		    "$name: a branch has its newest commit");
		is_deeply(ask($api, 'commits', $p, branch => 'feature/x')->{json}{data}, [$tip],
		    "$name: any branch has its newest commit");
		is_deeply(ask($api, 'commits', $p, branch => 'b30', page => 2)->{json}{data}, [],
		    "$name: a branch has only its newest commit");
		rejected(ask($api, 'commits', $p, branch => 'none'), 404, qr/no branch with that name/,
		    "$name: an unknown branch");
		my $known = join ',',
		    map { qq({"hash":"$_$_","message":"m$_","authorName":"n","authorEmail":"e",)
		    . qq("committedAt":"2026-01-02T03:04:05.000Z","url":null}) } 1 .. 5;
		$db->sql("INSERT INTO branch_commits (project_id, branch, commits) VALUES ($p, 'trunk', "
		    . "'[$known]')");
		is_deeply([map { $_->{hash} } walk($api, 'commits', $p, limit => 2)], [qw(11 22 33 44 55)],
		    "$name: commits are those of the runner's clone");
		is_deeply(ask($api, 'commits', $p, branch => 'trunk', page => 5, limit => 1)->{json},
		    { data => [{ hash => '55', message => 'm5',
			authorName => 'n', authorEmail => 'e', committedAt => '2026-01-02T03:04:05.000Z',
			url => undef }],
			pagination => { page => 5, limit => 1, hasMore => JSON::PP::false() } },
			    "$name: a commit has all members of the runner's clone");
		is_deeply(ask($api, 'commits', $p, branch => 'trunk', page => 6, limit => 1)->{json}{data},
		    [], "$name: a page past the last commit of the clone is empty");
		is($api->put("/api/projects/$p", { description => 'the same repository' })->{status}, 200,
		    "$name: the description is changed");
		is(scalar @{ ask($api, 'commits', $p)->{json}{data} }, 5,
		    "$name: a new description keeps the commits of the clone");
		is($api->put("/api/projects/$p", { repository => "file://$dir/full" })->{status}, 200,
		    "$name: the address is changed");
		is_deeply(ask($api, 'commits', $p)->{json}{data}, [$tip],
		    "$name: a new address drops the commits of the clone");
		my $e = project($api, "$dir/empty");
		is_deeply(ask($api, $_, $e)->{json}{data}, [], "$name: an empty repository has no $_")
		    for qw(branches commits);
		rejected(ask($api, 'commits', project($api, "$dir/headless")), 404, qr/no default branch/,
		    "$name: a repository without a default branch");
			rejected(ask($api, $_, project($api, "$dir/nowhere")), 502,
			    qr/cannot read the repository/,
		    "$name: $_ of a missing repository") for qw(branches commits);
		$api->stop;
	}
	# over ssh from a real sshd, with the configured key and host keys
	my ($me, $shell) = (getpwuid $>)[0, 8];
	my $port = free_port();
	run_cmd('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', "$dir/$_") for qw(host user other);
	if (is_root()) { chown((getpwnam 'nobody')[2, 3], "$dir/$_") or die for qw(user other) }
	spew("$dir/authorized", slurp("$dir/user.pub"), 0644);
	for my $case (['known', 'host'], ['strange', 'other']) {
		my ($name, $of) = @$case;
		spew("$dir/$name", "[127.0.0.1]:$port " . join(' ', (split ' ', slurp("$dir/$of.pub"))[0, 1])
		    . "\n", 0644);
	}
	SKIP: {
		skip "the shell of $me, $shell, permits no login", 10 if $shell =~ m{/(?:nologin|false)$};
		my $sshd = sshd_start($dir, $port, "$dir/authorized", "$dir/host");
		for my $case (['with the right key', 'user', 'known', 1],
		    ['with another key', 'other', 'known', 0],
			['with another host key', 'user', 'strange', 0],
			['without a known host key', 'user', undef, 0]) {
			my ($name, $key, $known, $good) = @$case;
			my $api = Slipway::API->start(db => $db,
			    conf => "[gitserver]\ntype = git\nallowed_hosts = 127.0.0.1:$port\n"
			    . "ssh_key_file = $dir/$key\n"
			    . ($known ? "ssh_known_hosts = $dir/$known\n" : ''));
			my $p = project($api, "ssh://$me\@127.0.0.1:$port$dir/full");
			if ($good) {
				is(scalar(walk($api, 'branches', $p, limit => 10)), 23,
				    "ssh $name: all branches are listed");
				is(ask($api, 'commits', $p)->{json}{data}[0]{hash}, $hash[0],
				    "ssh $name: a branch has its newest commit");
			} else {
				my $got = ask($api, 'branches', $p);
				rejected($got, 502, qr/cannot read the repository/, "ssh $name");
				unlike($got->{body}, qr/\Q$dir\E\/(?:user|other|known)|PRIVATE/,
				    "ssh $name: the error does not mention keys");
			}
			$api->stop;
		}
		stop_process($sshd);
	}
	my $api = Slipway::API->start(db => $db, conf => "[gitserver]\nallow_local = yes\n");
	my $p = project($api, "$dir/full");
	for my $what (qw(branches commits)) {
		rejected(ask($api, $what, $p), 503, qr/GITSERVER_URL/,
		    "$what without a Git server name the setting");
	}
}
done_testing();
