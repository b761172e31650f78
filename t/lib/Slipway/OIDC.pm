# SPDX-License-Identifier: ISC
package Slipway::OIDC;

# A third-party authorization server (npm's oidc-provider) with Gitea's paths,
# behind nginx with TLS.
#
#   my $as = Slipway::OIDC->start(redirect_uri => 'https://…') or …; # no npm
#   my $back = $as->authorize($url, 'ann');  # { code, state, iss } or { error, … }
#
# Options: secret of the client (without: a public one); accounts: login =>
# { id, full_name, email }; ttl: { AuthorizationCode => seconds, … }.

use strict;
use warnings;
use HTTP::Tiny ();
use Slipway::HTTP;
use IO::Socket::UNIX ();
use Cpanel::JSON::XS ();
use Slipway::Certificate;
use Slipway::Front;
use Slipway::Npm;
use Slipway::Test;

my $made = 0;

# Undef if npm's packages cannot be installed; a note says why.
sub start {
	my ($class, %opt) = @_;
	my $npm = npm_dir() or return undef;
	my $n = ++$made;
	my $dir = tempdir() . "/oidc$n";
	mkdir $dir, 0755 or die "$dir: $!";
	my $self = bless { dir => $dir, port => free_port(), redirect_uri => $opt{redirect_uri},
		client_id => 'slipway-client', secret => $opt{secret} }, $class;
	my %config = (socket => "$dir/oidc.sock", issuer => $self->url, ttl => $opt{ttl} || {},
		accounts => $opt{accounts}
		    || { ann => { id => 7, full_name => 'Ann', email => 'ann@example.org' } },
		clients => [{ client_id => $self->{client_id}, redirect_uris => [$opt{redirect_uri}],
			response_types => ['code'], grant_types => [qw(authorization_code refresh_token)],
			token_endpoint_auth_method => defined $opt{secret} ? 'client_secret_post' : 'none',
			defined $opt{secret} ? (client_secret => $opt{secret}) : () }]);
	spew("$dir/oidc.json", Cpanel::JSON::XS->new->utf8->canonical->encode(\%config));
	make_front($dir);
	$self->{pid} = start_process({ name => "oidc-$n", cwd => $npm }, 'node', 'oidc.mjs',
	    "$dir/oidc.json");
	poll(120, sub { IO::Socket::UNIX->new(Peer => "$dir/oidc.sock") })
	    or die "oidc-provider did not start:\n" . tail(slurp(tempdir() . "/oidc-$n.log"));
	$self->{nginx} = front_start(dir => $dir, port => $self->{port}, socket => "$dir/oidc.sock",
	    name => "oidc-nginx-$n");
	return $self;
}

sub url { my ($self) = @_; return "https://localhost:$self->{port}" }
sub ca { my ($self) = @_; return "$self->{dir}/ca.pem" }
sub client_id { my ($self) = @_; return $self->{client_id} }

# The [gitserver] section for it.
sub conf {
	my ($self) = @_;
	return "[gitserver]\nurl = @{[$self->url]}\ntype = gitea\nclient_id = $self->{client_id}\n"
	    . "redirect_uri = $self->{redirect_uri}\ntls_ca = @{[$self->ca]}\n"
	    . (defined $self->{secret} ? "client_secret = $self->{secret}\n" : '');
}

# Goes through the pages as a browser would, signs in and authorizes (deny => 1:
# denies), until the server redirects to the client: the query and location of that;
# { status, body } if it does not redirect.
sub authorize {
	my ($self, $url, $login, %opt) = @_;
	my (%cookies, $form);
	my $http = HTTP::Tiny->new(timeout => 600, max_redirect => 0, verify_SSL => 1,
	    SSL_options => { SSL_ca_file => $self->ca });
	my $here = $self->url;
	for (1 .. 20) {
		my %headers = %cookies
		    ? (Cookie => join '; ', map { "$_=$cookies{$_}" } sort keys %cookies) : ();
		my $got = $form
		    ? $http->post_form($url, $form, { headers => \%headers })
		    : $http->get($url, { headers => \%headers });
		$form = undef;
		my $set = $got->{headers}{'set-cookie'};
		for (ref $set ? @$set : defined $set ? $set : ()) {
			$cookies{$1} = $2 if /^([^=]+)=([^;]*)/;
		}
		if ($got->{status} =~ /^30[1237]$/) {
			$url = $got->{headers}{location} =~ s{^/}{$here/}r;
			return _sent_back($url) if index($url, "$here/") != 0;
			next;
		}
		return { status => $got->{status}, body => $got->{content} } if $got->{status} != 200;
		my ($prompt) = $got->{content} =~ /name="prompt" value="(\w+)"/;
		my ($action) = $got->{content} =~ /<form[^>]* action="([^"]+)"/;
		return { status => 200, body => $got->{content} } if !defined $prompt || !defined $action;
		if ($opt{deny}) {
			my ($abort) = $got->{content} =~ m{href="([^"]+/abort)"};
			$url = $abort =~ s{^/}{$here/}r;
			next;
		}
		$url = $action =~ s{^/}{$here/}r;
		$form = { prompt => $prompt, $prompt eq 'login' ? (login => $login, password => 'any') : () };
	}
	die 'the authorization server redirects in a loop';
}

sub _sent_back {
	my ($url) = @_;
	my %back = map { my ($k, $v) = split /=/, $_, 2; ($k => ($v =~ tr/+/ /r) =~ s/%(..)/chr hex $1/ger) }
	    split /&/, (split /\?/, $url, 2)[1] || '';
	return { %back, location => $url };
}

sub stop {
	my ($self) = @_;
	stop_process($self->{$_}) for qw(nginx pid);
	return;
}

1;
