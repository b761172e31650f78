# SPDX-License-Identifier: ISC
package Slipway::Forge::OAuth;

# OAuth 2.0 of the three servers: the authorization endpoint, where X-Test-Login
# names the user who authorizes the client (X-Test-Deny: the user who denies it),
# and the token endpoint with the errors of each server.

use strict;
use warnings;
use Digest::SHA qw(sha256);
use Cpanel::JSON::XS ();
use MIME::Base64 qw(decode_base64 encode_base64url);
use Slipway::Forge::State qw(random_hex);

my %paths = (
	gitea => { '/login/oauth/authorize' => \&authorize, '/login/oauth/access_token' => \&token,
		'/.well-known/openid-configuration' => \&discovery },
	gitlab => { '/oauth/authorize' => \&authorize, '/oauth/token' => \&token, '/oauth/revoke' => \&revoke,
		'/.well-known/openid-configuration' => \&discovery },
	github => { '/login/oauth/authorize' => \&authorize, '/login/oauth/access_token' => \&token },
);
my $json = Cpanel::JSON::XS->new->canonical->allow_nonref;

# A response, or undef for other paths.
sub answer {
	my ($store, $req) = @_;
	my $state = $store->get;
	my $do = $paths{ $state->{type} }{ $req->{path} } or return undef;
	my $self = bless { store => $store, state => $state, req => $req, type => $state->{type} },
	    __PACKAGE__;
	return $do->($self);
}

sub complain {
	my ($self, $text) = @_;
	$self->{store}->note('complaints', "$self->{req}{method} $self->{req}{path}: $text");
	return;
}

sub unescape { return Slipway::Forge::Rest::unescape($_[0] =~ tr/+/ /r) }

sub discovery {
	my ($self) = @_;
	my $url = $self->{state}{url};
	my ($authorize) = grep { /authorize$/ } keys %{ $paths{ $self->{type} } };
	my ($token) = grep { /token$/ } keys %{ $paths{ $self->{type} } };
	return [200, {},
		{ issuer => $url, authorization_endpoint => "$url$authorize", token_endpoint => "$url$token",
		response_types_supported => ['code'],
		grant_types_supported => [qw(authorization_code refresh_token)],
		code_challenge_methods_supported => ['S256'] }];
}

my %authorize_query = map { $_ => 1 } qw(client_id redirect_uri response_type state scope code_challenge
    code_challenge_method);

sub _back {
	my ($to, %with) = @_;
	my $mark = $to =~ /\?/ ? '&' : '?';
	return [303,
		{ Location => $to . $mark . join '&', map { "$_=" . Slipway::Forge::Rest::escape($with{$_}) }
		grep { defined $with{$_} } sort keys %with }, ''];
}

sub authorize {
	my ($self) = @_;
	my $q = $self->{req}{query};
	my $h = $self->{req}{headers};
	$self->complain("there is no parameter $_") for grep { !$authorize_query{$_} } sort keys %$q;
	$self->complain("parameter $_ stands there twice") for @{ $self->{req}{twice} };
	my $client = $self->{state}{clients}{ $q->{client_id} || '' };
	return [400, { 'Content-Type' => 'text/html' }, '<h1>Client ID not registered</h1>'] if !$client;
	my $to = $q->{redirect_uri};
	return [400, { 'Content-Type' => 'text/html' }, '<h1>Unregistered Redirect URI</h1>']
	    if !defined $to || !grep { $_ eq $to } @{ $client->{redirect_uris} };
	my @with = defined $q->{state} ? (state => $q->{state}) : ();
	my $fault = ($q->{response_type} || '') ne 'code' && $self->{type} ne 'github'
	    ? 'unsupported_response_type'
	    : !defined $client->{secret} && !$q->{code_challenge} ? 'invalid_request'
	    : $q->{code_challenge} && ($q->{code_challenge_method} || '') ne 'S256'
	    ? 'invalid_request' : undef;
	$self->complain("answered with $fault") if $fault;
	return _back($to, @with, error => $fault, error_description => 'not as it should be') if $fault;
	$self->complain('code_challenge is not of 43 characters')
	    if ($q->{code_challenge} || '') !~ /^[A-Za-z0-9_-]{43}$/;
	$self->complain('state is missing') if !length($q->{state} || '');
	$self->complain('scope is missing') if !length($q->{scope} || '');
	return _back($to, @with, error => 'access_denied', error_description => 'the request is denied')
	    if $h->{'x-test-deny'};
	my $login = $h->{'x-test-login'};
	my ($user) = grep { $_->{login} eq $login } values %{ $self->{state}{users} } if defined $login;
	return [200, { 'Content-Type' => 'text/html' }, '<h1>Sign in</h1>'] if !$user;
	my $code = random_hex(40);
	$self->{store}->change(sub {
		$_[0]{codes}{$code} = { client => $q->{client_id}, redirect_uri => $to, user => $user->{id},
			challenge => $q->{code_challenge}, scope => $q->{scope}, expires => time + 600 };
	});
	return _back($to, @with, code => $code);
}

my %token_body = map { $_ => 1 } qw(client_id client_secret code grant_type redirect_uri code_verifier
    refresh_token);

my $gitlab_client = 'Client authentication failed due to unknown client, no client authentication included,'
    . ' or unsupported authentication method.';
my $gitlab_grant = 'The provided authorization grant is invalid, expired, revoked, does not match the'
    . ' redirection URI used in the authorization request, or was issued to another client.';

# How each server rejects a request: error => [status, code, description].
my %refusals = (
	gitea => { client => [400, 'invalid_client', 'cannot load client with client id'],
		secret => [400, 'unauthorized_client', 'invalid client secret'],
		code => [400, 'unauthorized_client', 'client is not authorized'],
		used => [400, 'invalid_grant', 'authorization code is invalid'],
		uri => [400, 'unauthorized_client', 'unexpected redirect URI'],
		pkce => [400, 'unauthorized_client', 'failed PKCE code challenge'],
		refresh => [400, 'unauthorized_client', 'unable to parse refresh token'],
		grant => [400, 'unsupported_grant_type',
			'Only refresh_token or authorization_code grant type is supported'] },
	gitlab => { (map { $_ => [401, 'invalid_client', $gitlab_client] } qw(client secret)),
		(map { $_ => [400, 'invalid_grant', $gitlab_grant] } qw(code used uri pkce refresh)),
		grant => [400, 'unsupported_grant_type', 'The authorization grant type is not supported.'] },
	github => { (map { $_ => [200, 'incorrect_client_credentials',
		'The client_id and/or client_secret passed are'
			. ' incorrect.'] } qw(client secret)),
		(map { $_ => [200, 'bad_verification_code',
			'The code passed is incorrect or expired.'] } qw(code used pkce)),
		uri => [200, 'redirect_uri_mismatch',
			'The redirect_uri MUST match the registered callback URL.'],
		refresh => [200, 'bad_refresh_token', 'The refresh token passed is incorrect or expired.'],
		grant => [200, 'unsupported_grant_type', 'The grant type is not supported.'] },
);

sub refuse {
	my ($self, $why) = @_;
	my ($status, $error, $text) = @{ $refusals{ $self->{type} }{$why} };
	return [$status, {}, { error => $error, error_description => $text,
		($self->{type} eq 'github' ? (error_uri => 'https://docs.github.com/apps') : ()) }];
}

# (form, undef), or (undef, a response) if the body is not a valid form.
sub form {
	my ($self) = @_;
	my $req = $self->{req};
	my @wrong;
	push @wrong, 'it was no POST' if $req->{method} ne 'POST';
	push @wrong, 'the body is no form'
	    if ($req->{headers}{'content-type'} || '') !~ m{^application/x-www-form-urlencoded(?:;|$)};
	push @wrong, 'there is a query' if length $req->{query_string};
	push @wrong, 'User-Agent is missing' if !length($req->{headers}{'user-agent'} || '');
	push @wrong, 'Accept is not application/json'
	    if ($req->{headers}{accept} || '') !~ m{application/json};
	my %form;
	for my $pair (split /&/, $req->{body}) {
		my ($name, $value) = map { unescape($_) } split /=/, $pair, 2;
		push @wrong, "parameter $name stands there twice" if exists $form{$name};
		$form{$name} = $value;
	}
	return (\%form, undef) if !@wrong;
	$self->complain($_) for @wrong;
	return (undef, [400, {}, { error => 'invalid_request', error_description => join '; ', @wrong }]);
}

# The client, by form or by Basic authentication: (client, undef) or (undef, error).
sub client {
	my ($self, $form) = @_;
	if (($self->{req}{headers}{authorization} || '') =~ /^Basic (\S+)$/) {
		my ($id, $secret) = map { unescape($_) } split /:/, decode_base64($1), 2;
		@$form{qw(client_id client_secret)} = ($id, $secret);
	}
	my $client = $self->{state}{clients}{ defined $form->{client_id} ? $form->{client_id} : '' };
	return (undef, 'client') if !$client;
	return (undef, 'secret') if defined $client->{secret}
	    && (!defined $form->{client_secret} || $form->{client_secret} ne $client->{secret});
	return ($client, undef);
}

sub token {
	my ($self) = @_;
	my ($form, $fault) = $self->form;
	return $fault if $fault;
	$self->complain("there is no parameter $_") for grep { !$token_body{$_} } sort keys %$form;
	my ($client, $why) = $self->client($form);
	return $self->refuse($why) if !$client;
	my $grant = $form->{grant_type} || ($self->{type} eq 'github' ? 'authorization_code' : '');
	# Gitea checks the address before the code
	return $self->refuse('uri') if $self->{type} eq 'gitea' && $grant eq 'authorization_code'
	    && length($form->{redirect_uri} || '')
	    && !grep { $_ eq $form->{redirect_uri} } @{ $client->{redirect_uris} };
	return $grant eq 'authorization_code' ? $self->by_code($form)
	    : $grant eq 'refresh_token' ? $self->by_refresh($form) : $self->refuse('grant');
}

sub by_code {
	my ($self, $form) = @_;
	for my $need (qw(code redirect_uri code_verifier)) {
		$self->complain("$need is missing") if !length($form->{$need} || '');
	}
	my ($why, $answer);
	$self->{store}->change(sub {
		my ($state) = @_;
		my $code = $state->{codes}{ $form->{code} || '' };
		$why = !$code || $code->{client} ne $form->{client_id} ? 'code'
		    : $code->{used} || $code->{expires} <= time ? 'used'
		    : $code->{redirect_uri} ne ($form->{redirect_uri} || '') ? 'uri'
		    : defined $code->{challenge}
		    && encode_base64url(sha256($form->{code_verifier} || '')) ne $code->{challenge}
		    ? 'pkce' : undef;
		return if $why;
		$code->{used} = 1;
		$answer = _tokens($state, $state->{users}{ $code->{user} }, $form->{client_id},
		    $code->{scope});
	});
	return $why ? $self->refuse($why) : [200, { 'Cache-Control' => 'no-store' }, $answer];
}

sub by_refresh {
	my ($self, $form) = @_;
	$self->complain('redirect_uri is missing')
	    if $self->{type} eq 'gitlab' && !length($form->{redirect_uri} || '');
	my $answer;
	$self->{store}->change(sub {
		my ($state) = @_;
		my $old = $state->{refresh}{ $form->{refresh_token} || '' };
		return if !$old || ($old->{client} || $form->{client_id}) ne $form->{client_id};
		if ($state->{rotates}) {
			delete $state->{refresh}{ $form->{refresh_token} };
			$state->{tokens}{ $old->{access} }{revoked} = 1;
		}
		$answer = _tokens($state, $state->{users}{ $old->{user} }, $form->{client_id}, undef);
	});
	return $answer ? [200, { 'Cache-Control' => 'no-store' }, $answer] : $self->refuse('refresh');
}

my %life = (gitea => 3600, gitlab => 7200, github => 0);

sub _tokens {
	my ($state, $user, $client, $scope) = @_;
	my $type = $state->{type};
	my $life = defined $state->{token_life} ? $state->{token_life} : $life{$type};
	my ($access, $refresh) = Slipway::Forge::State::token_new($state, $user, client => $client,
		expires => $life, refresh => $life > 0);
	my $answer = { access_token => $access, token_type => $type eq 'gitlab' ? 'Bearer' : 'bearer' };
	@$answer{qw(expires_in refresh_token)} = ($life, $refresh) if $life;
	$answer->{created_at} = time if $type eq 'gitlab';
	$answer->{scope} = $scope if $type eq 'gitlab' && defined $scope;
	$answer->{scope} = defined $scope ? $scope =~ tr/ /,/r : '' if $type eq 'github';
	$answer->{refresh_token_expires_in} = 15897600 if $type eq 'github' && $life;
	return $answer;
}

sub revoke {
	my ($self) = @_;
	my ($form, $fault) = $self->form;
	return $fault if $fault;
	my ($client, $why) = $self->client($form);
	return $self->refuse($why) if !$client;
	$self->{store}->change(sub {
		my $token = $_[0]{tokens}{ $form->{token} || '' } or return;
		$token->{revoked} = 1;
		delete $_[0]{refresh}{ $token->{refresh} } if $token->{refresh};
	});
	return [200, {}, {}];
}

1;
