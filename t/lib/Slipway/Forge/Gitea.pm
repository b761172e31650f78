# SPDX-License-Identifier: ISC
package Slipway::Forge::Gitea;

# The REST interface of Gitea and Forgejo, under /api/v1.

use strict;
use warnings;
use Slipway::Forge::Git qw(branches commit_named commit_of commits default_branch named);

sub base { return '/api/v1' }

my %status = (state => 'text, must', target_url => 'text', description => 'text', context => 'text');
my @routes = (
	{ method => 'GET', path => '/version', do => sub { [200, {}, { version => version($_[0]) }] } },
	{ method => 'GET', path => '/settings/api', do => \&settings },
	{ method => 'GET', path => '/user', user => 1, do => \&user },
	{ method => 'GET', path => '/repositories/{id}', user => 1, do => \&repo_by_id },
	{ method => 'GET', path => '/repos/search', do => \&search,
		query => [qw(q topic includeDesc uid priority_owner_id team_id starredBy private is_private
		    template archived mode exclusive sort order page limit)] },
	{ method => 'GET', path => '/repos/{owner}/{repo}', do => \&repo },
	{ method => 'GET', path => '/repos/{owner}/{repo}/branches', query => [qw(page limit)],
		do => \&branch_list },
	{ method => 'GET', path => '/repos/{owner}/{repo}/branches/{branch}', do => \&branch },
	{ method => 'GET', path => '/repos/{owner}/{repo}/commits', do => \&commit_list,
		query => [qw(sha path since until stat verification files page limit not)] },
	{ method => 'GET', path => '/repos/{owner}/{repo}/git/commits/{sha}', do => \&commit,
		query => [qw(stat verification files)] },
	{ method => 'POST', path => '/repos/{owner}/{repo}/statuses/{sha}', user => 1, body => \%status,
		do => \&status },
);
sub routes { return @routes }

my %why = (
	none => 'token is required',
	unknown => 'invalid username, password or token',
	revoked => 'invalid username, password or token',
	expired => 'invalid username, password or token',
);

sub failed {
	my ($class, $c, $status, $why) = @_;
	my $message = $status == 401 ? $why{$why} : $status == 404 ? "The target couldn't be found." : $why;
	return [$status, {}, { ($status == 404 ? (errors => undef) : ()),
		message => $message, url => "$c->{api}/swagger" }];
}

# Gitea redirects with the same method, to an address without a host.
sub moved {
	my ($class, $c, $repo, $path) = @_;
	my $to = "$c->{req}{full_path}" =~ s{/repos/[^/]+/[^/]+}{/repos/$repo->{path}}r;
	$to .= "?$c->{req}{query_string}" if length $c->{req}{query_string};
	return [307, { Location => $to }, ''];
}

sub _user {
	my ($c, $user) = @_;
	return { id => $user->{id} + 0, login => $user->{login}, login_name => '', full_name => $user->{name},
		email => $user->{email}, avatar_url => "$c->{url}/avatars/$user->{id}",
		html_url => "$c->{url}/$user->{login}", language => '',
		active => Slipway::Forge::Rest::true(),
		is_admin => Slipway::Forge::Rest::false() };
}

sub user {
	my ($c) = @_;
	return [200, {}, _user($c, $c->{user})];
}

sub settings {
	my ($c) = @_;
	return [200, {}, { max_response_items => ($c->{state}{max_items} || 50) + 0, default_paging_num => 30,
		default_git_trees_per_page => 1000, default_max_blob_size => 10485760 }];
}

sub _repo {
	my ($c, $repo) = @_;
	my $dir = $c->git_dir($repo);
	my ($owner, $name) = $repo->{path} =~ m{^(.*)/([^/]+)$};
	my $empty = !branches($dir);
	my $bool = \&Slipway::Forge::Rest::bool;
	return { id => $repo->{id} + 0, owner => { login => $owner }, name => $name,
		full_name => $repo->{path},
		description => '', empty => $bool->($empty), private => $bool->($repo->{private}),
		fork => $bool->(0),
		archived => $bool->(0), html_url => "$c->{url}/$repo->{path}",
		url => "$c->{api}/repos/$repo->{path}",
		clone_url => "$c->{url}/$repo->{path}.git", ssh_url => "git\@localhost:$repo->{path}.git",
		default_branch => default_branch($dir), object_format_name => 'sha1',
		permissions => { admin => $bool->(0), push => $bool->($c->may_write($repo)),
			pull => $bool->(1) } };
}

# Without an account, all that is visible; else what that account may write.
sub search {
	my ($c) = @_;
	my $query = $c->{req}{query};
	my $account = $query->{uid} ? { id => $query->{uid} } : undef;
	my ($found, %header) = $c->repo_page('limit', 30, 50, $query->{q}, $account);
	my @data = map { _repo($c, $_) } @$found;
	return [200, \%header, { ok => Slipway::Forge::Rest::true(), data => \@data }];
}

sub repo {
	my ($c, $owner, $name) = @_;
	my ($repo, $fault) = $c->repo_by_path("$owner/$name");
	return $fault || [200, {}, _repo($c, $repo)];
}

sub repo_by_id {
	my ($c, $id) = @_;
	my ($repo, $fault) = $c->repo_by_id($id);
	return $fault || [200, {}, _repo($c, $repo)];
}

sub _branch {
	my ($c, $repo, $branch) = @_;
	my $commit = commit_of($c->git_dir($repo), $branch->{hash});
	return { name => $branch->{name},
		protected => Slipway::Forge::Rest::bool($repo->{protected}{ $branch->{name} }),
		commit => { id => $branch->{hash}, message => $commit->{message},
			timestamp => $commit->{committer}{date},
			url => "$c->{url}/$repo->{path}/commit/$branch->{hash}",
			author => { name => $commit->{author}{name}, email => $commit->{author}{email},
				username => '' } },
		required_approvals => 0, user_can_push => Slipway::Forge::Rest::bool($c->may_write($repo)) };
}

sub branch_list {
	my ($c, $owner, $name) = @_;
	my ($repo, $fault) = $c->repo_by_path("$owner/$name");
	return $fault if $fault;
	my @all = branches($c->git_dir($repo));
	return [200, { 'X-Total-Count' => 0 }, undef] if !@all;
	my ($page, $limit) = $c->page('limit', 30, 50);
	my $total = @all;
	my $from = ($page - 1) * $limit;
	my @some = $from < $total ? grep { defined } @all[$from .. $from + $limit - 1] : ();
	return [200, { 'X-Total-Count' => $total,
		$c->links("$c->{api}/repos/$owner/$name/branches", 'limit', $page, $limit, $total) },
		[map { _branch($c, $repo, $_) } @some]];
}

sub branch {
	my ($c, $owner, $name, $wanted) = @_;
	my ($repo, $fault) = $c->repo_by_path("$owner/$name");
	return $fault if $fault;
	my ($branch) = grep { $_->{name} eq $wanted } branches($c->git_dir($repo));
	return $branch ? [200, {}, _branch($c, $repo, $branch)] : failed(undef, $c, 404);
}

sub _commit {
	my ($c, $repo, $commit) = @_;
	return { sha => $commit->{hash}, created => $commit->{committer}{date},
		url => "$c->{api}/repos/$repo->{path}/git/commits/$commit->{hash}",
		html_url => "$c->{url}/$repo->{path}/commit/$commit->{hash}",
		commit => { message => $commit->{message}, author => $commit->{author},
			committer => $commit->{committer}, tree => {} },
		author => undef, committer => undef,
		parents => [map { { sha => $_,
			url => "$c->{api}/repos/$repo->{path}/git/commits/$_" } } @{ $commit->{parents} }] };
}

sub commit_list {
	my ($c, $owner, $name) = @_;
	my ($repo, $fault) = $c->repo_by_path("$owner/$name");
	return $fault if $fault;
	my $dir = $c->git_dir($repo);
	return [409, {}, { message => 'Git Repository is empty.', url => "$c->{api}/swagger" }]
	    if !branches($dir);
	my $sha = $c->{req}{query}{sha};
	my $tip = named($dir, defined $sha && length $sha ? $sha : default_branch($dir));
	return failed(undef, $c, 404) if !defined $tip;
	my ($page, $limit) = $c->page('limit', 30, 50);
	my $range = $c->{state}{commits_range};
	$limit = $range if $range && $limit > $range;
	my $not = $c->{state}{no_not} ? undef : $c->{req}{query}{not};
	my ($total, @commits) = commits($dir, $tip, ($page - 1) * $limit, $limit, $not);
	my $pages = int(($total + $limit - 1) / $limit);
	return [200,
		{ 'X-Total-Count' => $total, 'X-Page' => $page, 'X-PerPage' => $limit, 'X-Total' => $total,
		'X-PageCount' => $pages, 'X-HasMore' => $page < $pages ? 'true' : 'false',
		$c->links("$c->{api}/repos/$owner/$name/commits", 'limit', $page, $limit, $total) },
		[map { _commit($c, $repo, $_) } @commits]];
}

# Like Gitea, takes a hash, a part of one, or the name of a branch or tag.
sub commit {
	my ($c, $owner, $name, $sha) = @_;
	my ($repo, $fault) = $c->repo_by_path("$owner/$name");
	return $fault if $fault;
	my $commit = commit_named($c->git_dir($repo), $sha);
	return $commit ? [200, {}, _commit($c, $repo, $commit)] : failed(undef, $c, 404);
}

sub version { my ($c) = @_; return $c->{state}{version} || '1.22.6' }

sub states {
	my ($c) = @_;
	my ($minor) = version($c) =~ /^1\.(\d+)/;
	return qw(pending success error failure warning), defined $minor && $minor >= 25 ? 'skipped' : ();
}

sub status {
	my ($c, $owner, $name, $hash) = @_;
	my ($repo, $fault) = $c->repo_by_path("$owner/$name");
	return $fault if $fault;
	return failed(undef, $c, 403, 'user should have a permission to write to a repo')
	    if !$c->may_write($repo);
	if (!grep { $_ eq $c->{body}{state} } states($c)) {
		$c->complain("there is no state $c->{body}{state}");
		return failed(undef, $c, 422, 'no such state');
	}
	my $made = $c->status_new($repo, $hash, $c->{body}) or return failed(undef, $c, 500, '');
	return [201, {},
		{ id => $made->{id}, status => $made->{state}, context => $made->{context} || 'default',
		target_url => $made->{target_url} || '', description => $made->{description} || '',
		url => "$c->{api}/repos/$repo->{path}/statuses/$hash", creator => _user($c, $c->{user}) }];
}

1;
