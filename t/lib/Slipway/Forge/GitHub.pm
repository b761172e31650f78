# SPDX-License-Identifier: ISC
package Slipway::Forge::GitHub;

# The REST interface of GitHub Enterprise Server, under /api/v3.

use strict;
use warnings;
use MIME::Base64 qw(decode_base64);
use Slipway::Forge::Git qw(base_of branches commit_named commits default_branch tip_of);

sub base { return '/api/v3' }

my %status = (state => 'text, must', target_url => 'text', description => 'text', context => 'text');
my %commit_query = (query => [qw(sha path author committer since until page per_page)]);
my @routes = (
	{ method => 'GET', path => '/meta',
		do => sub { [200, {},
		{ verifiable_password_authentication => Slipway::Forge::Rest::true() }] } },
	{ method => 'GET', path => '/meta', do => sub { [200, {}, {}] } },
	{ method => 'GET', path => '/user', user => 1, do => \&user },
	{ method => 'GET', path => '/user/repos', user => 1, do => \&own,
		query => [qw(visibility affiliation type sort direction per_page page since before)] },
	{ method => 'GET', path => '/repositories/{id}', do => \&repo_by_id },
	{ method => 'GET', path => '/repositories/{id}/branches', query => [qw(page per_page protected)],
		do => sub { branch_list($_[0], $_[0]->repo_by_id($_[1])) } },
	{ method => 'GET', path => '/repositories/{id}/commits', %commit_query,
		do => sub { commit_list($_[0], $_[0]->repo_by_id($_[1])) } },
	{ method => 'GET', path => '/repositories/{id}/commits/{ref}', query => [qw(page per_page)],
		do => sub { commit($_[0], $_[2], $_[0]->repo_by_id($_[1])) } },
	{ method => 'GET', path => '/repos/{owner}/{repo}/commits/{ref}', query => [qw(page per_page)],
		do => sub { commit($_[0], $_[3], $_[0]->repo_by_path("$_[1]/$_[2]")) } },
	{ method => 'GET', path => '/repos/{owner}/{repo}/compare/{basehead}', query => [qw(page per_page)],
		do => sub { compare($_[0], $_[3], $_[0]->repo_by_path("$_[1]/$_[2]")) } },
	{ method => 'POST', path => '/repositories/{id}/statuses/{sha}', user => 1, body => \%status,
		do => sub { status($_[0], $_[2], $_[0]->repo_by_id($_[1])) } },
	{ method => 'GET', path => '/repos/{owner}/{repo}', do => \&repo },
	{ method => 'GET', path => '/repos/{owner}/{repo}/branches', query => [qw(page per_page protected)],
		do => sub { branch_list($_[0], $_[0]->repo_by_path("$_[1]/$_[2]")) } },
	{ method => 'GET', path => '/repos/{owner}/{repo}/commits', %commit_query,
		do => sub { commit_list($_[0], $_[0]->repo_by_path("$_[1]/$_[2]")) } },
	{ method => 'POST', path => '/repos/{owner}/{repo}/statuses/{sha}', user => 1, body => \%status,
		do => sub { status($_[0], $_[3], $_[0]->repo_by_path("$_[1]/$_[2]")) } },
	{ method => 'DELETE', path => '/applications/{client_id}/token', basic => 1,
		body => { access_token => 'text, must' }, do => \&revoke },
);
sub routes { return @routes }

my %message = (401 => 'Bad credentials', 403 => 'Resource not accessible by integration', 404 => 'Not Found');

sub failed {
	my ($class, $c, $status, $why) = @_;
	my $message = $status == 401 && $why eq 'none' ? 'Requires authentication' : $message{$status}
	    || $why;
	return [$status, {}, { message => $message, documentation_url => 'https://docs.github.com/rest',
		status => "$status" }];
}

sub judge {
	my ($class, $c) = @_;
	my $h = $c->{req}{headers};
	return (($h->{accept} || '') =~ m{application/vnd\.github\+json}
	    ? () : 'Accept is not application/vnd.github+json',
		($h->{'x-github-api-version'} || '') =~ /^\d{4}-\d\d-\d\d$/
		    ? () : 'X-GitHub-Api-Version is missing');
}

sub moved {
	my ($class, $c, $repo, $path) = @_;
	my $to = "$c->{api}/repositories/$repo->{id}" . ($c->{path} =~ m{^/repos/[^/]+/[^/]+(/.*)$} ? $1 : '')
	    . (length $c->{req}{query_string} ? "?$c->{req}{query_string}" : '');
	my $status = $c->{req}{method} eq 'GET' ? 301 : 307;
	return [$status, { Location => $to }, { message => 'Moved Permanently', url => $to,
		documentation_url => 'https://docs.github.com/rest/guides/'
		    . 'best-practices-for-using-the-rest-api#follow-redirects' }];
}

sub user {
	my ($c) = @_;
	my $user = $c->{user};
	return [200, {}, { login => $user->{login}, id => $user->{id} + 0, node_id => 'U_1', type => 'User',
		avatar_url => "$c->{url}/u/$user->{id}", url => "$c->{api}/users/$user->{login}",
		html_url => "$c->{url}/$user->{login}", name => $user->{name}, email => $user->{email} }];
}

sub _repo {
	my ($c, $repo) = @_;
	my ($owner, $name) = $repo->{path} =~ m{^(.*)/([^/]+)$};
	my $bool = \&Slipway::Forge::Rest::bool;
	return { id => $repo->{id} + 0, node_id => 'R_1', name => $name, full_name => $repo->{path},
		owner => { login => $owner }, private => $bool->($repo->{private}), archived => $bool->(0),
		html_url => "$c->{url}/$repo->{path}", url => "$c->{api}/repos/$repo->{path}",
		clone_url => "$c->{url}/$repo->{path}.git", ssh_url => "git\@localhost:$repo->{path}.git",
		default_branch => default_branch($c->git_dir($repo)), size => 1,
		permissions => { admin => $bool->(0), push => $bool->($c->may_write($repo)),
			pull => $bool->(1) } };
}

sub own {
	my ($c) = @_;
	my ($found, %header) = $c->repo_page('per_page', 30, 100, undef, $c->{user});
	return [200, \%header, [map { _repo($c, $_) } @$found]];
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

sub branch_list {
	my ($c, $repo, $fault) = @_;
	return $fault if $fault;
	my @all = branches($c->git_dir($repo));
	my ($page, $limit) = $c->page('per_page', 30, 100);
	my $from = ($page - 1) * $limit;
	my @some = $from < @all ? grep { defined } @all[$from .. $from + $limit - 1] : ();
	return [200,
		{ $c->links("$c->{api}/repositories/$repo->{id}/branches", 'per_page', $page, $limit,
		scalar @all) },
		[map { { name => $_->{name},
			protected => Slipway::Forge::Rest::bool($repo->{protected}{ $_->{name} }),
			commit => { sha => $_->{hash},
				url => "$c->{api}/repos/$repo->{path}/commits/$_->{hash}" } } } @some]];
}

sub _commit {
	my ($c, $repo, $commit) = @_;
	return { sha => $commit->{hash}, node_id => 'C_1',
		url => "$c->{api}/repos/$repo->{path}/commits/$commit->{hash}",
		html_url => "$c->{url}/$repo->{path}/commit/$commit->{hash}",
		commit => { message => $commit->{message}, author => $commit->{author},
			committer => $commit->{committer}, comment_count => 0 },
		author => undef, committer => undef,
		parents => [map { { sha => $_,
			url => "$c->{api}/repos/$repo->{path}/commits/$_" } } @{ $commit->{parents} }] };
}

sub commit_list {
	my ($c, $repo, $fault) = @_;
	return $fault if $fault;
	my $dir = $c->git_dir($repo);
	return failed(undef, $c, 409, 'Git Repository is empty.') if !branches($dir);
	my $sha = $c->{req}{query}{sha};
	my $tip = tip_of($dir, defined $sha && length $sha ? $sha : default_branch($dir));
	return failed(undef, $c, 404) if !defined $tip;
	my ($page, $limit) = $c->page('per_page', 30, 100);
	my ($total, @commits) = commits($dir, $tip, ($page - 1) * $limit, $limit);
	return [200,
		{ $c->links("$c->{api}/repositories/$repo->{id}/commits", 'per_page', $page, $limit,
		$total) },
		[map { _commit($c, $repo, $_) } @commits]];
}

sub commit {
	my ($c, $ref, $repo, $fault) = @_;
	return $fault if $fault;
	my $commit = commit_named($c->git_dir($repo), $ref);
	return $commit ? [200, {}, _commit($c, $repo, $commit)]
	    : failed(undef, $c, 422, "No commit found for SHA: $ref");
}

sub compare {
	my ($c, $basehead, $repo, $fault) = @_;
	return $fault if $fault;
	my $base = base_of($c->git_dir($repo), split /\.\.\./, $basehead);
	return $base ? [200, {}, { merge_base_commit => _commit($c, $repo, $base), commits => [] }]
	    : failed(undef, $c, 404);
}

my %states = map { $_ => 1 } qw(error failure pending success);

sub status {
	my ($c, $hash, $repo, $fault) = @_;
	return $fault if $fault;
	return failed(undef, $c, 404) if !$c->may_write($repo);
	my $field = !$states{ $c->{body}{state} } ? 'state'
	    : length($c->{body}{description} || '') > 140 ? 'description' : undef;
	my $made = $field ? undef : $c->status_new($repo, $hash, $c->{body});
	if (!$made) {
		$c->complain("$field is not valid") if $field;
		my $answer = failed(undef, $c, 422,
		    $field ? 'Validation Failed' : "No commit found for SHA: $hash");
		$answer->[2]{errors} = [{ resource => 'Status', field => $field, code => 'custom' }]
		    if $field;
		return $answer;
	}
	return [201, {},
		{ id => $made->{id}, state => $made->{state}, context => $made->{context} || 'default',
		target_url => $made->{target_url}, description => $made->{description},
		url => "$c->{api}/repos/$repo->{path}/statuses/$hash",
		creator => { login => $made->{creator} } }];
}

sub revoke {
	my ($c, $client) = @_;
	my ($basic) = ($c->{req}{headers}{authorization} || '') =~ /^Basic (\S+)$/;
	my $known = $c->{state}{clients}{$client};
	return failed(undef, $c, 404)
	    if !$known || !defined $basic || decode_base64($basic) ne "$client:$known->{secret}";
	my $gone = $c->{store}->change(sub {
		my $token = $_[0]{tokens}{ $c->{body}{access_token} };
		return 0 if !$token || $token->{revoked};
		$token->{revoked} = 1;
		delete $_[0]{refresh}{ $token->{refresh} } if $token->{refresh};
		return 1;
	});
	return $gone ? [204, {}, ''] : failed(undef, $c, 422, 'Validation Failed');
}

1;
