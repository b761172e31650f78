# SPDX-License-Identifier: ISC
package Slipway::Forge::Rest;

# The stand-in's REST interfaces: finds the route, authenticates and checks the
# request. The responses of the three servers are in modules of their names.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use Slipway::Forge::GitHub ();
use Slipway::Forge::GitLab ();
use Slipway::Forge::Gitea ();
use Slipway::Forge::Git qw(tip_of);
use Slipway::Forge::State;

my %kinds = (gitea => 'Slipway::Forge::Gitea', gitlab => 'Slipway::Forge::GitLab',
	github => 'Slipway::Forge::GitHub');
my $json = Cpanel::JSON::XS->new->canonical->allow_nonref;

# A response: [status, headers, text or a structure for JSON].
sub answer {
	my ($store, $req) = @_;
	my $state = $store->get;
	my $kind = $kinds{ $state->{type} };
	my $base = $kind->base;
	my ($path) = $req->{raw_path} =~ m{^\Q$base\E(/.*)$};
	return undef if !defined $path;
	my $self = bless { store => $store, state => $state, req => $req, kind => $kind,
		path => $path, api => "$state->{url}$base", url => $state->{url} }, __PACKAGE__;
	my ($route, @params) = $self->find($kind->routes);
	return $kind->failed($self, 404) if !$route;
	$self->{route} = $route;
	my $fault = $self->identify;
	return $fault if $fault;
	my @complaints = $self->judge;
	if (@complaints) {
		$self->complain($_) for @complaints;
		return [422, {}, { message => join '; ', @complaints }];
	}
	return $route->{do}->($self, @params);
}

sub find {
	my ($self, @routes) = @_;
	for my $route (@routes) {
		next if $route->{method} ne $self->{req}{method};
		my $pattern = join '([^/]+)', map { quotemeta } split /\{\w+\}/, $route->{path}, -1;
		my @got = $self->{path} =~ /^$pattern$/ or next;
		return ($route, $route->{path} =~ /\{/ ? map { unescape($_) } @got : ());
	}
	return;
}

sub unescape {
	my ($text) = @_;
	return $text =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ger;
}

sub escape {
	my ($text) = @_;
	return $text =~ s/([^A-Za-z0-9._~-])/sprintf '%%%02X', ord $1/ger;
}

# Sets the user of the request; returns a response if the token is rejected.
sub identify {
	my ($self) = @_;
	my $h = $self->{req}{headers};
	return undef if $self->{route}{basic};
	my ($token) = ($h->{authorization} || '') =~ /^(?:Bearer|token) (\S+)$/i;
	$token = $h->{'private-token'} if !defined $token && $self->{state}{type} eq 'gitlab';
	if (!defined $token) {
		return $self->{kind}->failed($self, 401, 'unknown') if defined $h->{authorization};
		return $self->{route}{user} ? $self->{kind}->failed($self, 401, 'none') : undef;
	}
	my ($user, $why) = Slipway::Forge::State::user_of_token($self->{state}, $token);
	return $self->{kind}->failed($self, 401, $why) if !$user;
	$self->{user} = $user;
	return undef;
}

# How the request violates the server's published interface.
sub judge {
	my ($self) = @_;
	my ($req, $route) = @$self{qw(req route)};
	my $h = $req->{headers};
	my %query = map { $_ => 1 } @{ $route->{query} || [] };
	my @unknown = grep { !$query{$_} } sort keys %{ $req->{query} };
	my @wrong = map { "unknown query parameter $_" } @unknown;
	push @wrong, "query parameter $_ is no number" for grep { /^(?:page|limit|per_page)$/
		&& $req->{query}{$_} !~ /^[1-9][0-9]{0,9}$/ } sort keys %{ $req->{query} };
	push @wrong, "query parameter $_ stands there twice" for grep { !/\[\]\z/ } @{ $req->{twice} };
	push @wrong, 'User-Agent is missing' if !length($h->{'user-agent'} || '');
	push @wrong, 'Accept takes no JSON' if defined $h->{accept} && $h->{accept} !~ m{[/+]json|\*/\*};
	push @wrong, $self->{kind}->judge($self) if $self->{kind}->can('judge');
	my $body = $route->{body};
	if (!$body) {
		push @wrong, 'a body was sent' if length $req->{body};
		return @wrong;
	}
	return (@wrong, 'the body is not application/json')
	    if ($h->{'content-type'} || '') !~ m{^application/json(?:;\s*charset=utf-8)?$}i;
	my $sent = eval { $json->decode($req->{body}) };
	return (@wrong, 'the body is no JSON object') if ref $sent ne 'HASH';
	$self->{body} = $sent;
	push @wrong, map { "there is no member $_" } grep { !exists $body->{$_} } sort keys %$sent;
	push @wrong, map { "member $_ is no text" } grep { ref $sent->{$_} || !defined $sent->{$_} }
	    grep { ($body->{$_} || '') =~ /^text/ } sort keys %$sent;
	push @wrong,
	    map { "member $_ is missing" } grep { $body->{$_} =~ /must/
	    && !defined $sent->{$_} } sort keys %$body;
	push @wrong, "target_url is no URL"
	    if defined $sent->{target_url} && $sent->{target_url} !~ m{^https?://[^/\s]+}i;
	return @wrong;
}

sub complain {
	my ($self, $text) = @_;
	$self->{store}->note('complaints', "$self->{req}{method} $self->{path}: $text");
	return;
}

# The repository of this id, if the user may read it: (it, undef), else (undef, a
# response).
sub repo_by_id {
	my ($self, $id) = @_;
	my $repo = $self->{state}{repos}{$id};
	return (undef, $self->{kind}->failed($self, 404))
	    if !$repo || $repo->{removed} || !$self->sees($repo);
	return ($repo, undef);
}

sub repo_by_path {
	my ($self, $path) = @_;
	my ($repo, $former) = Slipway::Forge::State::repo_at($self->{state}, $path);
	return (undef, $self->{kind}->failed($self, 404)) if !$repo || !$self->sees($repo);
	return (undef, $self->{kind}->moved($self, $repo, $path)) if $former;
	return ($repo, undef);
}

sub sees {
	my ($self, $repo) = @_;
	return Slipway::Forge::State::access($repo, $self->{user}) ne 'none';
}

sub may_write {
	my ($self, $repo) = @_;
	return Slipway::Forge::State::access($repo, $self->{user}) eq 'write';
}

sub git_dir {
	my ($self, $repo) = @_;
	return $self->{store}->dir . "/repos/$repo->{id}.git";
}

# (page, items on it): as requested, within the server's limits.
sub page {
	my ($self, $name, $default, $most) = @_;
	my $query = $self->{req}{query};
	$most = $self->{state}{max_items} if $self->{state}{max_items};
	my $limit = $query->{$name} || $default;
	$limit = $most if $limit > $most;
	return ($query->{page} || 1, $limit);
}

# The Link header of a page (RFC 8288), which keeps the other parameters.
sub links {
	my ($self, $base, $name, $page, $limit, $total) = @_;
	my $last = int(($total + $limit - 1) / $limit);
	my %keep = %{ $self->{req}{query} };
	delete @keep{ 'page', $name };
	my $url = sub {
		my %all = (%keep, $name => $limit, page => $_[0]);
		return $base . '?' . join '&', map { "$_=" . escape($all{$_}) } sort keys %all;
	};
	my @link;
	push @link, '<' . $url->($page + 1) . '>; rel="next"' if $page < $last;
	push @link, '<' . $url->($last) . '>; rel="last"' if $page < $last;
	push @link, '<' . $url->(1) . '>; rel="first"' if $page > 1;
	push @link, '<' . $url->($page - 1) . '>; rel="prev"' if $page > 1;
	return @link ? (Link => join(', ', @link)) : ();
}

# A page of repositories, the newest first: those that the user sees, whose path
# contains the text, and that an account may write. (the repositories, headers)
sub repo_page {
	my ($self, $name, $default, $most, $text, $account) = @_;
	my @all = grep { !$_->{removed} && $self->sees($_)
		&& (!$account || Slipway::Forge::State::access($_, $account) eq 'write')
		&& index(lc $_->{path}, lc($text // '')) >= 0 }
	    map { $self->{state}{repos}{$_} } sort { $b <=> $a } keys %{ $self->{state}{repos} };
	my ($page, $limit) = $self->page($name, $default, $most);
	my $from = ($page - 1) * $limit;
	return ([grep { defined } @all[$from .. $from + $limit - 1]],
	    $self->links("$self->{api}$self->{path}", $name, $page, $limit, scalar @all));
}

# Stores a status of a commit; undef if the commit is unknown.
sub status_new {
	my ($self, $repo, $hash, $status) = @_;
	return undef
	    if $hash !~ /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/ || !defined tip_of($self->git_dir($repo), $hash);
	return $self->{store}->change(sub {
		my ($state) = @_;
		my $made = { %$status, id => Slipway::Forge::State::next_id($state, 'status'),
			repo => $repo->{id},
			hash => $hash, creator => $self->{user}{login}, at => time };
		push @{ $state->{statuses} }, $made;
		return $made;
	});
}

sub true { return Cpanel::JSON::XS::true() }
sub false { return Cpanel::JSON::XS::false() }
sub bool { return $_[0] ? Cpanel::JSON::XS::true() : Cpanel::JSON::XS::false() }

1;
