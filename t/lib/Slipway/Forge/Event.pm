# SPDX-License-Identifier: ISC
package Slipway::Forge::Event;

# Events in the formats of the three servers: headers, signature, body.

use strict;
use warnings;
use Digest::SHA qw(hmac_sha256 hmac_sha256_hex);
use HTTP::Tiny ();
use Slipway::HTTP;
use Cpanel::JSON::XS ();
use MIME::Base64 qw(decode_base64 encode_base64);
use Slipway::Forge::Git qw(commit_of default_branch);
use Slipway::Forge::State qw(git_out random_hex);

my $json = Cpanel::JSON::XS->new->canonical->allow_nonref;
my %make = (gitea => \&_gitea, gitlab => \&_gitlab, github => \&_github);

# The event { url, ca, headers, body } of a hook { url, secret, ca, repo, … }.
# what: kind => 'push' or 'ping'; ref, before, after, user; body => another body,
# which is signed as well.
sub make {
	my ($store, $hook, %what) = @_;
	my $state = $store->get;
	my $repo = $state->{repos}{ $hook->{repo} };
	my ($headers, $body) = $make{ $state->{type} }->($state, $repo,
	    $store->dir . "/repos/$repo->{id}.git", \%what);
	$body = $what{body} ? $what{body} : $json->encode($body);
	my %headers = (%$headers, _signed($state, $hook, $body), 'Content-Type' => 'application/json',
		'User-Agent' => { gitea => 'Go-http-client/1.1', gitlab => 'GitLab/17.5.1',
			github => 'GitHub-Hookshot/9f1b2c3' }->{ $state->{type} });
	return { url => $hook->{url}, ca => $hook->{ca}, headers => \%headers, body => $body };
}

sub _uuid {
	return join '-', map { random_hex($_) } 8, 4, 4, 4, 12;
}

sub _signed {
	my ($state, $hook, $body) = @_;
	my $secret = defined $hook->{secret} ? $hook->{secret} : '';
	my $hex = length $secret ? hmac_sha256_hex($body, $secret) : '';
	if ($state->{type} eq 'gitlab') {
		return ('X-Gitlab-Token' => $secret) if !$hook->{signing_token};
		my ($key) = $hook->{signing_token} =~ /^whsec_(.*)$/;
		my ($id, $at) = (_uuid(), defined $hook->{at} ? $hook->{at} : time);
		return ('webhook-id' => $id, 'webhook-timestamp' => $at,
			'webhook-signature' => 'v1,'
			    . encode_base64(hmac_sha256("$id.$at.$body", decode_base64($key)), ''));
	}
	return ('X-Hub-Signature-256' => "sha256=$hex") if $state->{type} eq 'github';
	my %headers = ('X-Gitea-Signature' => $hex, 'X-Gogs-Signature' => $hex,
	    'X-Hub-Signature-256' => "sha256=$hex");
	$headers{'X-Forgejo-Signature'} = $hex if $state->{forgejo};
	return %headers;
}

# The commits of a push, newest first.
sub _new_commits {
	my ($dir, $what) = @_;
	return if $what->{after} =~ /^0+$/ || $what->{ref} !~ m{^refs/heads/};
	my @range = $what->{before} =~ /^0+$/
	    ? ('--max-count=1', $what->{after}) : ("$what->{before}..$what->{after}");
	my $list = git_out($dir, 'rev-list', @range);
	return map { commit_of($dir, $_) } split /\n/, defined $list ? $list : '';
}

sub _payload_commit {
	my ($state, $repo, $commit) = @_;
	return { id => $commit->{hash}, message => $commit->{message},
		timestamp => $commit->{committer}{date},
		url => "$state->{url}/$repo->{path}/commit/$commit->{hash}", added => [], removed => [],
		modified => [],
		author => { name => $commit->{author}{name}, email => $commit->{author}{email},
			username => '' },
		committer => { name => $commit->{committer}{name}, email => $commit->{committer}{email},
			username => '' } };
}

sub _repository {
	my ($state, $repo, $dir) = @_;
	my ($owner, $name) = $repo->{path} =~ m{^(.*)/([^/]+)$};
	return { id => $repo->{id} + 0, name => $name, full_name => $repo->{path},
		private => $repo->{private} ? Cpanel::JSON::XS::true() : Cpanel::JSON::XS::false(),
		html_url => "$state->{url}/$repo->{path}", owner => { login => $owner },
		clone_url => "$state->{url}/$repo->{path}.git", ssh_url => "git\@localhost:$repo->{path}.git",
		default_branch => default_branch($dir) };
}

sub _gitea {
	my ($state, $repo, $dir, $what) = @_;
	my $id = $what->{delivery} || _uuid();
	my $event = $what->{kind} eq 'push' || $what->{kind} eq 'ping' ? 'push' : $what->{kind};
	my %headers = map { ("X-$_-Event" => $event, "X-$_-Event-Type" => $event, "X-$_-Delivery" => $id) }
	    qw(Gitea Gogs GitHub), $state->{forgejo} ? 'Forgejo' : ();
	my $user = { id => $what->{user}{id} + 0, login => $what->{user}{login},
		username => $what->{user}{login},
		full_name => $what->{user}{name}, email => $what->{user}{email} };
	my @commits = map { _payload_commit($state, $repo, $_) } _new_commits($dir, $what);
	return (\%headers, { ref => $what->{ref}, before => $what->{before}, after => $what->{after},
		compare_url => "$state->{url}/$repo->{path}/compare/$what->{before}...$what->{after}",
		commits => [grep { defined } @commits[0 .. 4]], total_commits => scalar @commits,
		head_commit => $commits[0], repository => _repository($state, $repo, $dir), pusher => $user,
		sender => $user });
}

sub _github {
	my ($state, $repo, $dir, $what) = @_;
	my %headers = ('X-GitHub-Event' => $what->{kind}, 'X-GitHub-Delivery' => $what->{delivery} || _uuid(),
		'X-GitHub-Hook-ID' => 12345678, 'Accept' => '*/*');
	my $sender = { login => $what->{user}{login}, id => $what->{user}{id} + 0 };
	my $repository = _repository($state, $repo, $dir);
	my %ping = (zen => 'Keep it logically awesome.', hook_id => 12345678,
		hook => { type => 'Repository', events => ['push'] },
		repository => $repository, sender => $sender);
	return (\%headers, \%ping) if $what->{kind} eq 'ping';
	my @commits = map { _payload_commit($state, $repo, $_) } reverse _new_commits($dir, $what);
	my $bool = sub { $_[0] ? Cpanel::JSON::XS::true() : Cpanel::JSON::XS::false() };
	return (\%headers, { ref => $what->{ref}, before => $what->{before}, after => $what->{after},
		created => $bool->($what->{before} =~ /^0+$/), deleted => $bool->($what->{after} =~ /^0+$/),
		forced => $bool->(0), base_ref => undef, compare => "$state->{url}/$repo->{path}/compare",
		commits => \@commits, head_commit => $commits[-1], repository => $repository,
		pusher => { name => $what->{user}{login}, email => $what->{user}{email} },
		sender => $sender });
}

sub _gitlab {
	my ($state, $repo, $dir, $what) = @_;
	my $tag = ($what->{ref} || '') =~ m{^refs/tags/};
	my $kind = $what->{kind} eq 'push' || $what->{kind} eq 'ping'
	    ? ($tag ? 'tag_push' : 'push') : $what->{kind};
	my $name = { push => 'Push Hook', tag_push => 'Tag Push Hook' }->{$kind} || ucfirst("$kind Hook");
	my $id = $what->{delivery} || _uuid();
	my %headers = ('X-Gitlab-Event' => $name, 'X-Gitlab-Event-UUID' => $id,
	    'X-Gitlab-Webhook-UUID' => _uuid(),
		'X-Gitlab-Instance' => $state->{url}, 'Idempotency-Key' => $id);
	my $gone = $what->{after} =~ /^0+$/;
	my ($short) = $repo->{path} =~ m{([^/]+)$};
	my @commits = map { _payload_commit($state, $repo, $_) } reverse _new_commits($dir, $what);
	splice @commits, 0, @commits - 20 if @commits > 20;
	my $project = { id => $repo->{id} + 0, name => $short, path_with_namespace => $repo->{path},
		web_url => "$state->{url}/$repo->{path}", git_http_url => "$state->{url}/$repo->{path}.git",
		git_ssh_url => "git\@localhost:$repo->{path}.git",
		visibility_level => $repo->{private} ? 0 : 20,
		default_branch => default_branch($dir) };
	return (\%headers,
	    { object_kind => $kind, event_name => $kind, before => $what->{before}, after => $what->{after},
		ref => $what->{ref}, ref_protected => Cpanel::JSON::XS::false(),
		checkout_sha => $gone ? undef : $what->{after},
		message => undef, user_id => $what->{user}{id} + 0, user_name => $what->{user}{name},
		user_username => $what->{user}{login}, user_email => '', project_id => $repo->{id} + 0,
		project => $project,
		commits => \@commits, total_commits_count => scalar @commits,
		repository => { name => $short, url => "git\@localhost:$repo->{path}.git",
			git_http_url => "$state->{url}/$repo->{path}.git" } });
}

# Sends an event, returns the response and adds it to the deliveries.
sub deliver {
	my ($store, $event) = @_;
	my $http = HTTP::Tiny->new(timeout => 600, max_redirect => 0, verify_SSL => 1,
		agent => $event->{headers}{'User-Agent'},
		$event->{ca} ? (SSL_options => { SSL_ca_file => $event->{ca} }) : ());
	my %headers = %{ $event->{headers} };
	delete $headers{'User-Agent'};
	my $got = $http->post($event->{url}, { headers => \%headers, content => $event->{body} });
	my $answer = { status => $got->{status}, headers => $got->{headers}, body => $got->{content} };
	$answer->{json} = eval { $json->decode($got->{content}) }
	    if ($got->{headers}{'content-type'} || '') =~ /json/;
	$store->note('deliveries', { url => $event->{url}, status => $got->{status}, body => $got->{content},
		sent => $event->{body} });
	return $answer;
}

1;
