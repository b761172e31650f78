#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# A user whose account is blocked or gone at the Git server is signed out: at
# the next refusal of the token, or when the runner asks for the account.
# Nothing that says less than that signs anybody out.

use strict;
use warnings;
use Slipway::API;
use Slipway::Browser;
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
	# a token of the service changes nothing of this
	my $conf = $f->conf(token => scalar $f->token('bot'), report => 'no') . "[auth]\nsignup = deployer\nrecheck = 60\n";
	my $api = Slipway::API->start(db => $db, nginx => \&Slipway::Browser::unlimited, conf => "[api]\nslow_workers = 4\n$conf");
	my ($status, $out, $err) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'key');
	is($status, 0, 'a key') or diag("$out$err");
	my $key = $api->dir . '/secret.key';
	chown 0, (getpwnam 'nobody')[3], $key if is_root();
	$api->stop_api;
	$api->start_api;
	my $project = $api->post('/api/projects', { name => 'site', repository => $repo->clone_url })->{json}{id};
	my $branches = "/api/git/branches?projectId=$project";
	my $ann;
	my $enter = sub {
		$ann = Slipway::Browser->new($api, $f);
		my $got = $ann->enter('ann');
		is($got->{status}, 200, 'ann signs in') or diag($got->{body});
		return $ann;
	};
	my $in = sub { return $ann->visit('GET', '/api/auth/info')->{status} };
	my $rows = sub { return $db->sql("SELECT COUNT(*) FROM $_[0]") + 0 };
	my $refused = sub {
		my ($name) = @_;
		my $got = $ann->visit('GET', $branches);
		is($got->{status}, 502, "$name: the read is refused, with nobody else's token") or diag($got->{body});
		return $got->{json}{detail} || '';
	};
	my $revoke = sub { # all that ann has there
		$f->store->change(sub {
			my ($state) = @_;
			for my $list (qw(tokens refresh)) {
				delete $state->{$list}{$_} for grep { $state->{$list}{$_}{user} eq '7' } keys %{ $state->{$list} };
			}
		});
	};

	# --- at the next refusal, through the API
	$enter->();
	my $other = $ann;
	$enter->();
	is($ann->visit('GET', $branches)->{status}, 200, 'and reads');
	$revoke->();
	like($refused->('access revoked'), qr/sign in again/, 'which says what to do');
	is($in->(), 401, 'her session has ended');
	is($other->visit('GET', '/api/auth/info')->{status}, 401, 'that of her other browser, too');
	is($rows->('git_token'), 0, 'and the token is forgotten');
	$enter->();
	is($ann->visit('GET', $branches)->{status}, 200, 'when she signs in again all is well');

	# --- blocked: the server answers 403 to all that the account asks
	my @blocked = (kind => 'status', status => 403, type => $json, body => '{"message":"This account is prohibited from signing in"}');
	$f->fault(qr{/api/v\d/}, @blocked);
	like($refused->('a blocked account'), qr/does not admit the account \(403\): This account is prohibited/, 'in the words of the server');
	is($in->(), 401, 'her session has ended');
	my $b = Slipway::Browser->new($api, $f);
	my $got = $b->enter('ann');
	is($got->{status}, 403, 'she does not come in again') or diag($got->{body});
	like($got->{json}{detail}, qr/does not admit the account/, 'and hears why');
	$f->clear_faults;
	$enter->();

	# --- what is no word on the account
	my %innocent = (
		'one repository that is forbidden' => [ qr{/(?:repos|repositories|projects)/}, @blocked ],
		'a proxy that wants a password' => [ qr{}, kind => 'status', status => 401, type => 'text/html', body => '<h1>Maintenance</h1>' ],
		'a proxy that forbids all' => [ qr{}, kind => 'status', status => 403, type => 'text/html', body => '<h1>No</h1>' ],
		'a limit told in words' => [ qr{}, kind => 'status', status => 403, type => $json, body => '{"message":"You have exceeded a secondary rate limit."}' ],
		'errors' => [ qr{}, kind => 'status', status => 500, type => $json, body => '{"message":"oops"}' ],
		'too many requests' => [ qr{}, kind => 'status', status => 429, type => $json, body => '{"message":"later"}' ],
		'no connection' => [ qr{}, kind => 'drop' ],
	);
	for my $name (sort keys %innocent) {
		my ($path, @fault) = @{ $innocent{$name} };
		$f->fault($path, @fault);
		isnt($ann->visit('GET', $branches)->{status}, 200, "$name: nothing is read");
		$f->clear_faults;
		is($in->(), 200, "$name: she stays signed in");
		is($rows->('git_token'), 1, "$name: and her token is kept");
	}
	ok(poll(60, sub { $ann->visit('GET', $branches)->{status} == 200 }), 'afterwards she reads again');

	# --- the runner asks, where she does not
	my $runner = Slipway::Runner->start(db => $db, conf => "${conf}[secrets]\nkey_file = $key\n[runner]\nlease = 3\n");
	my $late = sub { $db->sql('UPDATE session SET checked_at = NOW(3) - INTERVAL 1 HOUR, check_after = NULL'); return };
	my $fresh = sub { return $db->sql('SELECT COUNT(*) FROM session WHERE checked_at <= NOW(3) - INTERVAL 30 SECOND') == 0 };
	my $asked = sub { return scalar grep { 1 } $f->requests($account{$type}) };
	$f->forget_requests;
	$late->();
	ok(poll(60, $fresh), 'the runner has her account confirmed') or diag($runner->said);
	is($in->(), 200, 'and she stays signed in');
	is($asked->(), 1, 'for one question');
	for my $name (sort grep { $_ ne 'one repository that is forbidden' } keys %innocent) {
		my ($path, @fault) = @{ $innocent{$name} };
		$f->forget_requests;
		$f->fault($path, @fault);
		$late->();
		ok(poll(60, sub { $f->requests($account{$type}) }), "$name: the runner has asked") or diag($runner->said);
		ok(poll(20, sub { $db->sql('SELECT COUNT(*) FROM session WHERE check_after > NOW(3)') == 1 }), "$name: it does so again after a while");
		is($in->(), 200, "$name: nobody is signed out");
		$f->clear_faults;
	}
	$late->();
	ok(poll(60, $fresh), 'later it is confirmed') or diag($runner->said);
	$db->sql('UPDATE git_token SET expires_at = NOW(3) - INTERVAL 1 SECOND') if $type ne 'github';
	$late->();
	ok(poll(60, $fresh), 'also with a token that has run out') or diag($runner->said);
	is($in->(), 200, 'which signs nobody out');

	$late->();
	$f->fault($account{$type}, @blocked);
	ok(poll(60, sub { $in->() == 401 }), 'blocked: her session ends, though she asks nothing of the Git server') or diag($runner->said);
	like($runner->said, qr/the Git server rejects the account/, 'the log says why');
	$f->clear_faults;
	$enter->();
	my $unsure = $ann;
	$db->sql('DELETE FROM git_token'); # as after an answer that was lost
	is($in->(), 200, 'without a token she is signed in for a while');
	$late->();
	ok(poll(60, sub { $in->() == 401 }), 'but no longer than the account can be unconfirmed') or diag($runner->said);
	$enter->();
	$f->remove_user('ann');
	$late->();
	ok(poll(60, sub { $in->() == 401 }), 'gone: her session ends') or diag($runner->said);
	is($rows->('session'), 0, 'none is left');
	is_deeply([grep { $_ !~ /no such/ } $f->complaints], [], 'nothing was sent that the server would not take');
	is($runner->stop, 0, 'the runner ends');
	$api->stop;
	$f->stop;
	$db->stop;
	return;
}
