# SPDX-License-Identifier: ISC
package Slipway::Visitor;

# A client that signs in and keeps the cookies that the service sets, as a browser
# does, without running pages.
#
#   my $b = Slipway::Visitor->new($api, $git_server);
#   my $got = $b->enter('ann');               signs in; the response to the login
#   my $back = $b->go('ann', deny => 1);      only authorizes: code, state, …
#   $b->login($back, iss => …);
#   $b->visit('GET', '/api/auth/info');       with its cookies
#
# The Git server is a Slipway::Forge or another object with authorize($url, $login).

use strict;
use warnings;

sub new {
	my ($class, $api, $server) = @_;
	return bless { api => $api->as('none'), server => $server, jar => {}, set => [] }, $class;
}

sub jar { my ($self) = @_; return $self->{jar} }
# The Set-Cookie lines of the last response.
sub set { my ($self) = @_; return @{ $self->{set} } }
sub cookies { my ($self) = @_; return join '; ', map { "$_=$self->{jar}{$_}" } sort keys %{ $self->{jar} } }

sub visit {
	my ($self, $method, $path, $body, %headers) = @_;
	my $got = $self->{api}->request($method, $path, $body, { Cookie => $self->cookies, %headers });
	my $set = $got->{headers}{'set-cookie'};
	$self->{set} = [ref $set ? @$set : defined $set ? $set : ()];
	for my $line (@{ $self->{set} }) {
		my ($name, $value) = $line =~ /^([^=]+)=([^;]*)/;
		if ($line =~ /Max-Age=0/) { delete $self->{jar}{$name} } else { $self->{jar}{$name} = $value }
	}
	return $got;
}

sub go {
	my ($self, $login, %opt) = @_;
	my $got = $self->visit('GET', '/api/auth/url');
	die "url: $got->{status} $got->{body}" if $got->{status} != 200;
	return { %{ $self->{server}->authorize($got->{json}{url}, $login, %opt) }, url => $got->{json}{url} };
}

sub login {
	my ($self, $back, %more) = @_;
	return $self->visit('POST', '/api/auth/login',
	    { code => $back->{code}, state => $back->{state}, %more });
}

sub enter { my ($self, $login) = @_; return $self->login($self->go($login)) }

# For start(nginx => …): no rate limit, as many users sign in from one address.
sub unlimited { my ($name, $text) = @_; return $text =~ s/rate=\d+r\/m/rate=60000r\/m/gr }

# For start(nginx => …): the header X-Address states the address of a client.
sub addressed {
	my ($name, $text) = @_;
	return $text if $name ne 'slipway-http.conf';
	return "$text\nset_real_ip_from 127.0.0.1;\nreal_ip_header X-Address;\n";
}

1;
