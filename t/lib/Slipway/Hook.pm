# SPDX-License-Identifier: ISC
package Slipway::Hook;

# Signed push events of the Git servers: headers and body.
#
#   my ($headers, $body) = push_event(gitea => $secret, branch => 'main',
#       path => 'owner/name', commit => 'a' x 40);
#   $api->as('none')->post("/api/hooks/$project", $body, $headers);

use strict;
use warnings;
use Digest::SHA qw(hmac_sha256_hex);
use Exporter qw(import);
use Cpanel::JSON::XS ();
use MIME::Base64 qw(decode_base64 encode_base64);

our @EXPORT = qw(push_event push_body sign_event @HOOK_KINDS);
our @HOOK_KINDS = qw(gitea forgejo gitlab gitlab-signed github);

my $json = Cpanel::JSON::XS->new->utf8->canonical;
my $number = 0;

# The body.  Options: branch, or ref; path; commit; message; repo_id;
# body => { … } adds members.
sub push_body {
	my ($kind, %o) = @_;
	my $ref = defined $o{ref} ? $o{ref} : 'refs/heads/' . (defined $o{branch} ? $o{branch} : 'main');
	my $commit = defined $o{commit} ? $o{commit} : 'a' x 40;
	my $message = defined $o{message} ? $o{message} : "Mend it\n\nat last";
	my $path = defined $o{path} ? $o{path} : 'owner/name';
	my $id = defined $o{repo_id} ? $o{repo_id} : 42;
	my @commits = ({ id => $commit, message => $message,
		url => "https://git.example.org/$path/commit/$commit",
		author => { name => 'Ann', email => 'ann@example.org' }, added => [], removed => [],
		modified => ['file'] });
	my %body = (ref => $ref, before => '0' x 39 . '1', after => $commit);
	if ($kind =~ /^gitlab/) {
		%body = (%body, object_kind => 'push', event_name => 'push', checkout_sha => $commit,
			user_id => 4, user_name => 'Ann', user_username => 'ann', project_id => $id,
			project => { id => $id, name => 'name', path_with_namespace => $path,
				git_http_url => "https://git.example.org/$path.git",
				default_branch => 'main' },
			commits => \@commits, total_commits_count => 1);
	} else {
		%body = (%body, compare_url => '', commits => \@commits, total_commits => 1,
			head_commit => $commit =~ /^0+$/ ? undef : $commits[0],
			repository => { id => $id, name => 'name', full_name => $path,
				owner => { id => 1, login => 'owner' },
				clone_url => "https://git.example.org/$path.git", default_branch => 'main' },
			pusher => { id => 4, login => 'ann', name => 'ann' },
			sender => { id => 4, login => 'ann' });
	}
	return $json->encode({ %body, %{ $o{body} || {} } });
}

# The headers of a body.  Options: delivery, event, time (of Standard Webhooks).
sub sign_event {
	my ($kind, $secret, $body, %o) = @_;
	my $delivery = defined $o{delivery} ? $o{delivery} : sprintf '%08x-0000-4000-8000-%012x', $$,
	    ++$number;
	my $event = defined $o{event} ? $o{event} : $kind =~ /^gitlab/ ? 'Push Hook' : 'push';
	my $mac = hmac_sha256_hex($body, $secret);
	my %gitea = ('X-Gitea-Event' => $event, 'X-Gitea-Delivery' => $delivery, 'X-Gitea-Signature' => $mac,
		'X-GitHub-Event' => $event, 'X-GitHub-Delivery' => $delivery,
		'X-Hub-Signature-256' => "sha256=$mac");
	return {%gitea} if $kind eq 'gitea';
	return { %gitea, 'X-Forgejo-Event' => $event, 'X-Forgejo-Delivery' => $delivery,
		'X-Forgejo-Signature' => $mac }
	    if $kind eq 'forgejo';
	return { 'X-GitHub-Event' => $event, 'X-GitHub-Delivery' => $delivery,
		'X-Hub-Signature-256' => "sha256=$mac",
		'User-Agent' => 'GitHub-Hookshot/044aadd' } if $kind eq 'github';
	my %gitlab = ('X-Gitlab-Event' => $event, 'X-Gitlab-Event-UUID' => $delivery,
	    'Idempotency-Key' => $delivery,
		'X-Gitlab-Instance' => 'https://git.example.org');
	return { %gitlab, 'X-Gitlab-Token' => $secret } if $kind eq 'gitlab';
	my $time = defined $o{time} ? $o{time} : time;
	my $key = decode_base64($secret =~ s/^whsec_//r);
	my $signature = encode_base64(pack('H*', hmac_sha256_hex("$delivery.$time.$body", $key)), '');
	return { %gitlab, 'webhook-id' => $delivery, 'webhook-timestamp' => $time,
		'webhook-signature' => "v1,$signature" };
}

sub push_event {
	my ($kind, $secret, %o) = @_;
	my $body = push_body($kind, %o);
	return (sign_event($kind, $secret, $body, %o), $body);
}

1;
