# SPDX-License-Identifier: ISC
package Slipway::Forge::GitLab;

# The REST interface of GitLab, under /api/v4.

use strict;
use warnings;
use Slipway::Forge::Git qw(base_of branches commit_named commit_of commits default_branch tip_of);

sub base { return '/api/v4' }

my %status = (state => 'text, must', target_url => 'text', description => 'text', context => 'text',
	name => 'text', ref => 'text', coverage => 'number', pipeline_id => 'number');
my @routes = (
	{ method => 'GET', path => '/version', user => 1,
		do => sub { [200, {}, { version => $_[0]{state}{version} || '17.5.1', revision => 'a' }] } },
	{ method => 'GET', path => '/user', user => 1, do => \&user },
	{ method => 'GET', path => '/projects', do => \&search,
		query => [qw(membership archived simple order_by sort search search_namespaces visibility
		    owned page per_page)] },
	{ method => 'GET', path => '/projects/{id}', do => \&repo,
		query => [qw(license statistics with_custom_attributes)] },
	{ method => 'GET', path => '/projects/{id}/repository/branches', do => \&branch_list,
		query => [qw(page per_page search regex sort page_token)] },
	{ method => 'GET', path => '/projects/{id}/repository/branches/{branch}', do => \&branch },
	{ method => 'GET', path => '/projects/{id}/repository/commits', do => \&commit_list,
		query => [qw(ref_name since until path author all with_stats first_parent order trailers page
		    per_page)] },
	{ method => 'GET', path => '/projects/{id}/repository/commits/{sha}', do => \&commit,
		query => ['stats'] },
	{ method => 'GET', path => '/projects/{id}/repository/merge_base', do => \&merge_base,
		query => ['refs[]'] },
	{ method => 'POST', path => '/projects/{id}/statuses/{sha}', user => 1, body => \%status,
		do => \&status },
);
sub routes { return @routes }

my %refused = (
	expired => 'Token is expired. You can either do re-authorization or token refresh.',
	revoked => 'Token was revoked. You have to re-authorize from the user.',
);
my %message = (401 => '401 Unauthorized', 403 => '403 Forbidden', 404 => '404 Project Not Found');

sub failed {
	my ($class, $c, $status, $why) = @_;
	return [401, { 'WWW-Authenticate' => 'Bearer realm="Protected by OAuth 2.0", error="invalid_token"' },
		{ error => 'invalid_token',
			error_description => $refused{$why} }] if $status == 401 && $refused{$why};
	return [$status, {},
		{ message => $status == 401 ? $message{401} : defined $why ? $why : $message{$status} }];
}

sub moved {
	my ($class, $c, $repo) = @_;
	return failed(undef, $c, 405, 'Non GET methods are not allowed for moved projects')
	    if $c->{req}{method} ne 'GET';
	my $to = "$c->{api}/projects/$repo->{id}" . ($c->{path} =~ m{^/projects/[^/]+(/.*)$} ? $1 : '')
	    . (length $c->{req}{query_string} ? "?$c->{req}{query_string}" : '');
	return [302, { Location => $to, 'Content-Type' => 'text/plain' },
		"This resource has been moved temporarily to $to."];
}

# Finds a project by number, or by path with escaped slashes.
sub project {
	my ($c, $id) = @_;
	return $id =~ /^[0-9]+$/ ? $c->repo_by_id($id) : $c->repo_by_path($id);
}

sub user {
	my ($c) = @_;
	my $user = $c->{user};
	return [200, {},
		{ id => $user->{id} + 0, username => $user->{login}, name => $user->{name}, state => 'active',
		locked => Slipway::Forge::Rest::false(),
		avatar_url => "$c->{url}/uploads/-/system/user/avatar/$user->{id}/avatar.png",
		web_url => "$c->{url}/$user->{login}", email => $user->{email},
		commit_email => $user->{email} }];
}

sub search {
	my ($c) = @_;
	my $query = $c->{req}{query};
	my ($found, %header) = $c->repo_page('per_page', 20, 100, $query->{search},
	    $query->{membership} ? $c->{user} : undef);
	return [200, \%header, [map { _repo($c, $_) } @$found]];
}

sub repo {
	my ($c, $id) = @_;
	my ($repo, $fault) = project($c, $id);
	return $fault || [200, {}, _repo($c, $repo)];
}

sub _repo {
	my ($c, $repo) = @_;
	my $dir = $c->git_dir($repo);
	my $empty = !branches($dir);
	my ($name) = $repo->{path} =~ m{([^/]+)$};
	return
		{ id => $repo->{id} + 0, name => $name, path => $name, path_with_namespace => $repo->{path},
		name_with_namespace => $repo->{path} =~ s{/}{ / }gr, description => undef,
		default_branch => $empty ? undef : default_branch($dir),
		empty_repo => Slipway::Forge::Rest::bool($empty),
		archived => Slipway::Forge::Rest::false(),
		visibility => $repo->{private} ? 'private' : 'public',
		web_url => "$c->{url}/$repo->{path}", http_url_to_repo => "$c->{url}/$repo->{path}.git",
		ssh_url_to_repo => "git\@localhost:$repo->{path}.git", forks_count => 0, star_count => 0,
		permissions => { project_access => { access_level => $c->may_write($repo) ? 30 : 10 },
			group_access => undef } };
}

sub _commit {
	my ($c, $repo, $commit) = @_;
	my ($title) = split /\n/, $commit->{message};
	return { id => $commit->{hash}, short_id => substr($commit->{hash}, 0, 8), title => $title,
		message => $commit->{message}, created_at => $commit->{committer}{date},
		author_name => $commit->{author}{name}, author_email => $commit->{author}{email},
		authored_date => $commit->{author}{date}, committer_name => $commit->{committer}{name},
		committer_email => $commit->{committer}{email}, committed_date => $commit->{committer}{date},
		parent_ids => $commit->{parents}, trailers => {}, extended_trailers => {},
		web_url => "$c->{url}/$repo->{path}/-/commit/$commit->{hash}" };
}

sub _branch {
	my ($c, $repo, $branch) = @_;
	my $dir = $c->git_dir($repo);
	my $bool = \&Slipway::Forge::Rest::bool;
	return { name => $branch->{name}, merged => $bool->(0),
		protected => $bool->($repo->{protected}{ $branch->{name} }),
		developers_can_push => $bool->(0), developers_can_merge => $bool->(0),
		can_push => $bool->($c->may_write($repo)),
		default => $bool->($branch->{name} eq default_branch($dir)),
		web_url => "$c->{url}/$repo->{path}/-/tree/" . Slipway::Forge::Rest::escape($branch->{name}),
		commit => _commit($c, $repo, commit_of($dir, $branch->{hash})) };
}

sub _paging {
	my ($c, $rest, $repo, $page, $limit, $total, $tell) = @_;
	my $pages = int(($total + $limit - 1) / $limit);
	return ('X-Page' => $page, 'X-Per-Page' => $limit, 'X-Next-Page' => $page < $pages ? $page + 1 : '',
		'X-Prev-Page' => $page > 1 ? $page - 1 : '',
		($tell ? ('X-Total' => $total, 'X-Total-Pages' => $pages) : ()),
		$c->links("$c->{api}/projects/$repo->{id}/repository/$rest", 'per_page', $page, $limit,
		    $total));
}

sub branch_list {
	my ($c, $id) = @_;
	my ($repo, $fault) = project($c, $id);
	return $fault if $fault;
	my @all = branches($c->git_dir($repo));
	my $search = $c->{req}{query}{search};
	@all = grep { index(lc $_->{name}, lc $search) >= 0 } @all if defined $search;
	my ($page, $limit) = $c->page('per_page', 20, 100);
	my $from = ($page - 1) * $limit;
	my @some = $from < @all ? grep { defined } @all[$from .. $from + $limit - 1] : ();
	return [200, { _paging($c, 'branches', $repo, $page, $limit, scalar @all, 1) },
		[map { _branch($c, $repo, $_) } @some]];
}

sub branch {
	my ($c, $id, $wanted) = @_;
	my ($repo, $fault) = project($c, $id);
	return $fault if $fault;
	my ($branch) = grep { $_->{name} eq $wanted } branches($c->git_dir($repo));
	return $branch
	    ? [200, {}, _branch($c, $repo, $branch)] : failed(undef, $c, 404, '404 Branch Not Found');
}

# Like GitLab, omits the number of commits, and returns an empty list for an unknown
# branch.
sub commit_list {
	my ($c, $id) = @_;
	my ($repo, $fault) = project($c, $id);
	return $fault if $fault;
	my $dir = $c->git_dir($repo);
	return [200, {}, []] if !branches($dir);
	my $ref = $c->{req}{query}{ref_name};
	my $tip = tip_of($dir, defined $ref && length $ref ? $ref : default_branch($dir));
	return [200, {}, []] if !defined $tip;
	my ($page, $limit) = $c->page('per_page', 20, 100);
	my ($total, @commits) = commits($dir, $tip, ($page - 1) * $limit, $limit);
	return [200, { _paging($c, 'commits', $repo, $page, $limit, $total, 0) },
		[map { _commit($c, $repo, $_) } @commits]];
}

sub commit {
	my ($c, $id, $sha) = @_;
	my ($repo, $fault) = project($c, $id);
	return $fault if $fault;
	my $commit = commit_named($c->git_dir($repo), $sha);
	return $commit ? [200, {}, _commit($c, $repo, $commit)]
	    : failed(undef, $c, 404, '404 Commit Not Found');
}

sub merge_base {
	my ($c, $id) = @_;
	my ($repo, $fault) = project($c, $id);
	return $fault if $fault;
	my $base = base_of($c->git_dir($repo), $c->{req}{query_string} =~ /refs%5B%5D=([0-9a-f]+)/g);
	return $base ? [200, {}, _commit($c, $repo, $base)]
	    : failed(undef, $c, 400, '400 Bad request - Could not find ref');
}

# GitLab rejects a transition to the status that a job already has.
my %by = (pending => 'enqueue', running => 'run', success => 'success', failed => 'drop',
    canceled => 'cancel',
	skipped => 'skip');

sub _stuck {
	my ($c, $repo, $hash, $body, $name) = @_;
	my ($last) = grep { $_->{repo} eq $repo->{id} && $_->{hash} eq $hash && ($_->{name} || '') eq $name
		&& ($_->{ref} || '') eq ($body->{ref} || '') } reverse @{ $c->{store}->get->{statuses} };
	return undef if !$last || $last->{state} !~ /^(?:pending|running)$/;
	return undef
	    if $last->{state} ne $body->{state}
	    && !($last->{state} eq 'running' && $body->{state} eq 'pending');
	my $by = $by{ $body->{state} };
	return failed(undef, $c, 400, "Cannot transition status via :$by from :$last->{state}"
	    . " (Reason(s): Status cannot transition via \"$by\")");
}

sub status {
	my ($c, $id, $hash) = @_;
	my ($repo, $fault) = project($c, $id);
	return $fault if $fault;
	return failed(undef, $c, 403) if !$c->may_write($repo);
	my $body = $c->{body};
	if (!$by{ $body->{state} }) {
		$c->complain("there is no state $body->{state}");
		return [400, {}, { error => 'state does not have a valid value' }];
	}
	my $name = $body->{name} || $body->{context} || 'default';
	return failed(undef, $c, 404, "404 References for commit Not Found") if defined $body->{ref}
	    && !defined tip_of($c->git_dir($repo), $body->{ref});
	my $stuck = _stuck($c, $repo, $hash, $body, $name);
	return $stuck if $stuck;
	my $made = $c->status_new($repo, $hash, { %$body, name => $name, context => $name })
	    or return failed(undef, $c, 404, '404 Commit Not Found');
	return [201, {},
		{ id => $made->{id}, sha => $hash, ref => $made->{ref}, status => $made->{state},
		name => $name,
		target_url => $made->{target_url}, description => $made->{description},
		allow_failure => Slipway::Forge::Rest::false(),
		coverage => undef, author => { id => $c->{user}{id} + 0, username => $c->{user}{login} } }];
}

1;
