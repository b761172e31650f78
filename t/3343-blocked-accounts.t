#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A user whose account is blocked or deleted at the Git server is signed out, and the
# user's API tokens end: when the server rejects the token, or when the runner checks
# the account. Other errors end nothing.

use strict;
use warnings;
use Slipway::API qw(bearer);
use Slipway::Visitor;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

my $json = 'application/json';
my %account = (gitea => qr{/api/v1/user$}, gitlab => qr{/api/v4/user$}, github => qr{/api/v3/user$});

for my $type (@ARGV ? @ARGV : qw(gitea gitlab github)) {
	subtest $type => sub { blocked($type) };
}
done_testing;

sub blocked {
	my ($type) = @_;
	my $db = Slipway::DB->start;
	my $f = Slipway::Forge->start(type => $type);
	$f->user(ann => { id => 7 });
	$f->user(bot => { id => 8 });
	my $repo = $f->repo('team/site', private => 1, users => ['ann', 'bot']);
	$repo->commit('main', { file => "one\n" }, 'first');
	# A token of the service must not replace the user's.
	my $conf = $f->conf(token => scalar $f->token('bot'), report => 'no')
	    . "[auth]\nsignup = deployer\nrecheck = 60\n";
	my $api = Slipway::API->start(db => $db, keys => 1, nginx => \&Slipway::Visitor::unlimited,
	    conf => "[api]\nslow_workers = 4\n$conf");
	my $key = $api->dir . '/secret.key';
	my $project = $api->post('/api/projects',
	    { name => 'site', repository => $repo->clone_url })->{json}{id};
	my $branches = "/api/git/branches?projectId=$project";
	my $ann;
	my $enter = sub {
		$ann = Slipway::Visitor->new($api, $f);
		my $got = $ann->enter('ann');
		is($got->{status}, 200, 'ann signs in') or diag($got->{body});
		return $ann;
	};
	my $in = sub { return $ann->visit('GET', '/api/auth/info')->{status} };
	my $token;
	my $program = sub { return $api->as('none')->get('/api/auth/info', bearer($token)) };
	my $works = sub { return $program->()->{status} };
	my $rows = sub { return $db->sql("SELECT COUNT(*) FROM $_[0]") + 0 };
	my $rejected = sub {
		my ($name) = @_;
		my $got = $ann->visit('GET', $branches);
		is($got->{status}, 502, "$name: a read returns 502 instead of using another token")
		    or diag($got->{body});
		return $got->{json}{detail} || '';
	};
	my $revoke = sub { # all tokens of ann
		$f->store->change(sub {
			my ($state) = @_;
			for my $list (qw(tokens refresh)) {
				my $tokens = $state->{$list};
				delete $tokens->{$_} for grep { $tokens->{$_}{user} eq '7' } keys %$tokens;
			}
		});
	};

	# --- the server rejects the token of a request
	$enter->();
	$token = $ann->visit('POST', '/api/auth/tokens', { name => 'ci' },
	    'Sec-Fetch-Site' => 'same-origin')->{json}{token};
	is($works->(), 200, 'an API token of ann works');
	my $other = $ann;
	$enter->();
	is($ann->visit('GET', $branches)->{status}, 200, 'ann reads branches');
	$revoke->();
	like($rejected->('a revoked token'), qr/sign in again/i,
	    'the error for a revoked token says to sign in again');
	is($in->(), 401, 'a revoked token ends the session');
	is($other->visit('GET', '/api/auth/info')->{status}, 401,
	    'a revoked token ends the session of the other browser');
	is($rows->('git_token'), 0, 'a revoked token is deleted');
	my $ended = $program->();
	is($ended->{status}, 401, 'a revoked token ends the API token');
	like($ended->{headers}{'www-authenticate'}, qr/error="invalid_token"/,
	    'the response to an ended API token has the error invalid_token');
	like($ended->{json}{detail},
	    qr/^The Git server no longer accepts the account .* signed in with that account/,
	    'the detail says how to get it back');
	is($api->as('none')->post('/api/auth/session', undef, bearer($token))->{status}, 401,
	    'an API token that has ended starts no session');
	is($api->get('/api/auth/info')->{status}, 200, 'a user without an account there keeps the API token');
	$enter->();
	is($works->(), 200, 'when ann has signed in again, the API token works again');
	is($ann->visit('GET', $branches)->{status}, 200, 'ann reads branches after signing in again');

	# --- a blocked account: the server returns 403 to every request of it
	my @blocked = (kind => 'status', status => 403, type => $json,
		body => '{"message":"This account is prohibited from signing in"}');
	$f->fault(qr{/api/v\d/}, @blocked);
	like($rejected->('a blocked account'),
	    qr/does not admit the account \(403\): This account is prohibited/,
	    'the error for a blocked account quotes the server');
	is($in->(), 401, 'a blocked account ends the session');
	is($works->(), 401, 'a blocked account ends the API token');
	my $b = Slipway::Visitor->new($api, $f);
	my $got = $b->enter('ann');
	is($got->{status}, 403, 'a blocked account cannot sign in') or diag($got->{body});
	is($works->(), 401, 'a rejected sign-in does not bring the API token back');
	like($got->{json}{detail}, qr/does not admit the account/,
	    'the error of the login says that the account is blocked');
	$f->clear_faults;
	$enter->();

	# --- errors that do not concern the account
	my @html = (qr{}, kind => 'status', type => 'text/html');
	my @error = (qr{}, kind => 'status', type => $json);
	my %innocent = (
		'a forbidden repository' => [ qr{/(?:repos|repositories|projects)/}, @blocked ],
		'a proxy that requires a password' => [ @html, status => 401,
			body => '<h1>Maintenance</h1>' ],
		'a proxy that forbids everything' => [ @html, status => 403, body => '<h1>No</h1>' ],
		'a rate limit as 403' => [ @error, status => 403,
		    body => '{"message":"You have exceeded a secondary rate limit."}' ],
		'a server error' => [ @error, status => 500, body => '{"message":"oops"}' ],
		'a rate limit as 429' => [ @error, status => 429, body => '{"message":"later"}' ],
		'a closed connection' => [ qr{}, kind => 'drop' ],
	);
	for my $name (sort keys %innocent) {
		my ($path, @fault) = @{ $innocent{$name} };
		$f->fault($path, @fault);
		isnt($ann->visit('GET', $branches)->{status}, 200, "$name: a read fails");
		$f->clear_faults;
		is($in->() . $works->(), '200200', "$name: a failed read ends neither session nor API token");
		is($rows->('git_token'), 1, "$name: a failed read does not delete the token");
	}
	ok(poll(60, sub { $ann->visit('GET', $branches)->{status} == 200 }),
	    'ann reads branches after these errors');

	# --- the runner checks the account
	my $runner = Slipway::Runner->start(db => $db,
	    conf => "${conf}[secrets]\nkey_file = $key\n[runner]\nlease = 3\n");
	my $make_due = sub {
		$db->sql('UPDATE user SET git_checked_at = NOW(3) - INTERVAL 1 HOUR,'
		    . ' git_check_after = NULL');
		return;
	};
	my $checked = sub {
		my $due = 'forge IS NOT NULL AND git_checked_at <= NOW(3) - INTERVAL 30 SECOND';
		return $db->sql("SELECT COUNT(*) FROM user WHERE $due") == 0;
	};
	my $checks = sub { return scalar grep { 1 } $f->requests($account{$type}) };
	$f->forget_requests;
	$make_due->();
	ok(poll(60, $checked), 'the runner checks the account') or diag($runner->said);
	is($in->(), 200, 'a confirmed account keeps the session');
	is($checks->(), 1, 'the runner checks an account with one request');
	for my $name (sort grep { $_ ne 'a forbidden repository' } keys %innocent) {
		my ($path, @fault) = @{ $innocent{$name} };
		$f->forget_requests;
		$f->fault($path, @fault);
		$make_due->();
		ok(poll(60, sub { $f->requests($account{$type}) }), "$name: the runner checks the account")
		    or diag($runner->said);
		my $held = 'SELECT COUNT(*) FROM user WHERE git_check_after > NOW(3)';
		ok(poll(20, sub { $db->sql($held) == 1 }),
		    "$name: the runner postpones the next check");
		is($in->() . $works->(), '200200', "$name: a failed check ends no session or API token");
		$f->clear_faults;
	}
	$make_due->();
	ok(poll(60, $checked), 'the runner checks the account after these errors') or diag($runner->said);
	$db->sql('UPDATE git_token SET expires_at = NOW(3) - INTERVAL 1 SECOND') if $type ne 'github';
	$make_due->();
	ok(poll(60, $checked), 'the runner checks the account of an expired token') or diag($runner->said);
	is($in->(), 200, 'an expired token does not end the session');

	$db->sql('DELETE FROM session');
	$make_due->();
	$f->fault($account{$type}, @blocked);
	ok(poll(60, sub { $works->() == 401 }),
	    "the runner's check of a blocked account ends the API token of a user without a session")
	    or diag($runner->said);
	$f->clear_faults;
	$enter->();
	is($works->(), 200, 'a sign-in brings it back');
	$make_due->();
	$f->fault($account{$type}, @blocked);
	ok(poll(60, sub { $in->() == 401 }), "the runner's check of a blocked account ends the session")
	    or diag($runner->said);
	ok(poll(60, sub { $runner->said =~ /the Git server rejects the account/ }),
	    'the log gives the reason');
	$f->clear_faults;
	$enter->();
	my $unsure = $ann;
	$db->sql('DELETE FROM git_token'); # as after a response that was lost
	is($in->(), 200, 'a session without a token works for a while');
	$make_due->();
	ok(poll(60, sub { $in->() == 401 }), 'a session without a token ends at the next check')
	    or diag($runner->said);
	is($works->(), 401, 'an API token is rejected, too');
	$enter->();
	$f->remove_user('ann');
	$make_due->();
	ok(poll(60, sub { $in->() == 401 }), "the runner's check of a deleted account ends the session")
	    or diag($runner->said);
	is($rows->('session'), 0, 'no session remains');
	is_deeply([grep { $_ !~ /no such/ } $f->complaints], [],
	    'every request to the Git server was well-formed');
	is($runner->stop, 0, 'the runner ends with status 0');
	$api->stop;
	$f->stop;
	$db->stop;
	return;
}
