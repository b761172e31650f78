#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Which repositories a user sees: those that the Git server shows to the user's
# account there, or to the service if the user has no such account, and never
# what it showed to another user.

use strict;
use warnings;
use JSON::PP ();
use POSIX ();
use Test::More;
use Slipway::API;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;

for my $type (qw(gitea gitlab)) {
	note($type);
	my $db = Slipway::DB->start;
	my $f = Slipway::Forge->start(type => $type);
	$f->user($_) for qw(ann eve bot);
	my %repo = (ann => $f->repo('team/ann', private => 1, users => ['ann']),
	    eve => $f->repo('team/eve', private => 1, users => ['eve']),
		bot => $f->repo('team/bot', private => 1, users => ['bot']), open => $f->repo('team/open'));
	my %tip = map { $_ => $repo{$_}->commit('main', {}, "for $_") } keys %repo;
	my $key = tempdir() . "/$type.key";
	my $start = sub {
		my (%more) = @_;
		my $conf = $f->conf(%more) . "[secrets]\nkey_file = $key\n";
		if (!-e $key) {
			my $file = spew(tempdir() . "/$type.conf", $db->conf . $conf, 0600);
			ok(make_keys($file, $key), 'slipway-admin key creates the keys for secrets');
			chmod 0640, $key;
		}
		return Slipway::API->start(db => $db, conf => $conf);
	};
	my $api = $start->();
	my %as = (ann => $api->new_token('maintainer', 'ann'),
	    map { $_ => $api->new_token('viewer', $_) } qw(eve nobody));
	my %p = map { $_ => $api->post('/api/projects',
	    { name => $_, repository => $repo{$_}->clone_url })->{json}{id} } keys %repo;
	# What a user gets for a project: the newest commit, or the status.
	my $sees = sub {
		my ($who, $what) = @_;
		my $got = $api->get_in_time("/api/git/branches?projectId=$p{$what}",
		    { Authorization => "Bearer $as{$who}" });
		my $also = $api->get_in_time("/api/git/commits?projectId=$p{$what}",
		    { Authorization => "Bearer $as{$who}" });
		is($also->{status}, $got->{status}, "$who, $what: commits have the same status as branches");
		return $got->{status} == 200 ? $got->{json}{data}[0]{commitHash} : $got->{status};
	};
	# Accepts a user's API token again although the Git server rejected the stored token.
	my $admit = sub { $db->sql("UPDATE user SET git_refused_at = NULL WHERE username = '$_[0]'") };
	my $give = sub {
		my ($who, $seconds) = @_;
		my ($access, $refresh) = $f->token($who, expires => 3600, refresh => 1);
		my ($status, $out, $err) = run_cmd(program('t/unit/access_probe'), $api->conf_file, 'put',
		    $db->sql("SELECT id FROM user WHERE username = '$who'") =~ /(\d+)/, $access, $refresh,
		    $seconds || 3600);
		like($out, qr/^put/, "a token of $who is stored") or diag($err);
		return $access;
	};

	is($sees->($_, 'open'), $tip{open}, "$_ sees a public repository") for qw(ann nobody);
	is($sees->($_, 'ann'), 404, "$_, without a token, does not see ann's repository")
	    for qw(ann eve nobody);
	my %token = map { $_ => $give->($_) } qw(ann eve);
	for my $round (1 .. 2) {
		is($sees->('ann', 'ann'), $tip{ann}, 'ann sees her repository');
		is($sees->('eve', 'ann'), 404, "eve does not see ann's repository");
		is($sees->('nobody', 'ann'), 404, "a user without an account does not see ann's repository");
		is($sees->('eve', 'eve'), $tip{eve}, 'eve sees her repository');
		is($sees->('ann', 'eve'), 404, "ann does not see eve's repository");
		is($sees->($_, 'bot'), 404, "$_ does not see the service's repository")
		    for qw(ann eve nobody);
	}

	# --- the list of repositories
	my $list = sub {
		my $got = $api->get('/api/git/repositories', @_);
		return join ' ', $got->{status}, sort map { $_->{path} } @{ $got->{json}{data} || [] };
	};
	# the probe stores no real account id
	$db->sql("UPDATE user SET forge_id = '1' WHERE username = 'ann'");
	is($list->({ Authorization => "Bearer $as{ann}" }), '200 team/ann', 'ann lists her own repositories');
	is($list->(), '200 team/open', 'a user without an account lists what is public');

	# --- addresses of pages, of which clients make links
	for my $of ([ 'the list of repositories', '/api/git/repositories', qr{repos/search$|/projects$},
		{ id => 1, full_name => 'a/b', path_with_namespace => 'a/b', empty => JSON::PP::false } ],
	    [ 'the list of commits', "/api/git/commits?projectId=$p{open}", qr{/commits$}, { sha => '1' x 40,
		id => '1' x 40, message => 'm', commit => { message => 'm', author => {} } } ]) {
		my ($what, $path, $asked, $item) = @$of;
		for my $url ('javascript:alert(1)', 'https://git.example.org/x') {
			my $want = $url =~ /^https/ ? $url : 'null';
			my $list = [ { %$item, html_url => $url, web_url => $url } ];
			$list = { data => $list } if $type eq 'gitea' && $path =~ /repositories/;
			$f->fault($asked, kind => 'status', status => 200, type => 'application/json',
			    body => JSON::PP::encode_json($list));
			my $got = $api->get_in_time($path);
			is("$got->{status} " . ($got->{json}{data}[0]{url} // 'null'), "200 $want",
			    "$what passes on only addresses of pages: $url") or diag($got->{body});
			$f->clear_faults;
		}
	}

	# --- a user without an account, after a rename and with another repository at the old path
	$repo{open}->rename('team/opened');
	is($sees->('nobody', 'open'), $tip{open}, 'a user without an account is led to the new path');
	is($sees->('ann', 'open'), $tip{open}, 'ann finds a renamed repository by its id');
	my $usurper = $f->repo('team/open');
	$usurper->commit('main', {}, 'not it');
	is($sees->($_, 'open'), $tip{open}, "$_ gets the renamed repository, not the new one at its path")
	    for qw(ann nobody);
	# a user who cannot see the renamed repository must not make others take the wrong one
	$repo{ann}->rename('team/anns');
	is($sees->('ann', 'ann'), $tip{ann}, 'ann finds her renamed repository');
	my $trap = $f->repo('team/ann');
	$trap->commit('main', {}, 'a trap');
	is($sees->('eve', 'ann'), 404, "eve does not get the new repository at the old path of ann's");
	like($db->sql("SELECT path FROM git_repo WHERE project_id = $p{ann}"), qr{^team/anns$}m,
	    "eve's request does not change the stored path");
	is($sees->('ann', 'ann'), $tip{ann}, 'ann still finds her renamed repository');
	my $detail_for = sub {
		my ($who, $what) = @_;
		return $api->get_in_time("/api/git/branches?projectId=$p{$what}",
		    { Authorization => "Bearer $as{$who}" })->{json}{detail};
	};
	like($detail_for->('nobody', 'ann'),
	    qr/was renamed or removed .*\S; the request was anonymous\. Sign in/,
	    'a user without an account is advised to sign in');
	unlike($detail_for->('eve', 'ann'), qr/anonymous/, 'eve, who has an account, is not');
	$trap->remove;

	# --- expired tokens; a refresh that is late may lose the pair
	my $refreshes = sub { return scalar grep { $_->{body} =~ /refresh_token/ } $f->requests };
	within(3, sub {
		$give->('ann');
		$f->expire_tokens('ann');
		$f->forget_requests;
		is($sees->('ann', 'ann'), $tip{ann}, 'an expired token is refreshed');
		is($refreshes->(), 1, 'a token is refreshed once for both requests');
	});
	# --- concurrent requests: one refresh, even if it revokes the old pair
	within(3, sub {
		$give->('ann');
		$f->expire_tokens('ann');
		$f->forget_requests;
		my @pids = map {
			my $n = $_;
			my $pid = fork;
			if (!$pid) {
				my (undef, $got) = run_cmd('curl', '-s', '--cacert', $api->cacert, '-H',
				    "Authorization: Bearer $as{ann}",
				    $api->url . "/api/git/branches?projectId=$p{ann}");
				spew(tempdir() . "/$type-at-once$n", $got);
				POSIX::_exit(0);
			}
			$pid;
		} 1 .. 3;
		waitpid $_, 0 for @pids;
		like(slurp(tempdir() . "/$type-at-once$_"), qr/"commitHash":"$tip{ann}"/,
		    'each of three concurrent requests with a revoked token succeeds') for 1 .. 3;
		is($refreshes->(), 1, 'three concurrent requests refresh a token once');
	});
	# --- no time left for a refresh: one that is aborted may revoke the pair
	$f->expire_tokens('ann');
	$f->forget_requests;
	$f->fault(qr{/(?:repositories|projects)/}, kind => 'delay', seconds => $f->patience - 2.5,
	    times => 1);
	my $late = $api->get("/api/git/branches?projectId=$p{ann}", { Authorization => "Bearer $as{ann}" });
	is($late->{status}, 504, 'a server that is slow to reject a token returns 504')
	    or diag($late->{body});
	like($late->{json}{detail}, qr/too slow to renew|not respond in time/,
	    'the detail of a slow server gives the cause');
	is($refreshes->(), 0, 'no token is refreshed if no time is left');
	my $tries = 0;
	within(3, sub {
		$give->('ann'), $f->expire_tokens('ann') if $tries++;
		is($sees->('ann', 'ann'), $tip{ann}, 'the next request refreshes the token');
	});
	$f->expire_tokens('ann');
	$f->drop_refresh_tokens;
	my $got = $api->get_in_time("/api/git/branches?projectId=$p{ann}",
	    { Authorization => "Bearer $as{ann}" });
	is($got->{status}, 502, 'a token that cannot be refreshed returns 502') or diag($got->{body});
	like($got->{json}{detail}, qr/sign in again/i, 'the detail says to sign in again');
	is($sees->('ann', 'ann'), 401, 'the API token of a user whose token was rejected does not work');
	$admit->('ann');
	is($sees->('ann', $_), 502, "a token that cannot be refreshed returns 502 for every repository: $_")
	    for qw(ann open);
	$api->stop;

	$api = $start->(token => scalar $f->token('bot'));
	is($sees->('nobody', 'bot'), $tip{bot},
	    'a user without an account sees what the service sees');
	is($sees->('ann', $_), 502,
	    "ann, whose token cannot be refreshed, does not see what the service sees: $_")
	    for qw(bot ann open);
	is($sees->('eve', 'bot'), 404, 'eve, who has an account, does not see what the service sees');
	is($sees->('eve', 'eve'), $tip{eve}, "eve's token still works");
	$f->expire_tokens('eve');
	unlike($detail_for->('eve', 'ann'), qr/anonymous/,
	    'eve with an expired token is not treated as a user without an account');
	$f->drop_refresh_tokens;
	$admit->('eve');
	is($sees->('eve', $_), 502,
	    "the service does not replace eve's account when her token cannot be refreshed: $_")
	    for qw(bot eve open);

	# --- the time for a refresh counts
	within($f->patience + 2, sub {
		$give->('ann', 1);
		$f->expire_tokens('ann');
		$f->fault('/oauth/', kind => 'delay', seconds => 0.6 * $f->patience);
		$f->fault('branches', kind => 'delay', seconds => 0.6 * $f->patience);
		my $watch = stopwatch();
		$got = $api->get("/api/git/branches?projectId=$p{ann}",
		    { Authorization => "Bearer $as{ann}" });
		my $took = $watch->();
		is($got->{status}, 504, 'a slow refresh and a slow list return 504') or diag($got->{body});
		cmp_ok($took, '<', $f->patience + deadline(6),
		    sprintf 'a slow refresh and a slow list end within the limit: %.1f s', $took);
		$f->clear_faults;
		is($sees->('ann', 'ann'), $tip{ann}, 'a slow refresh is not lost');
	});

	unlike($api->log, qr/\Q$_\E/, 'no token is in the log') for values %token;
	is_deeply([$f->complaints], [], 'the server received only valid requests')
	    or diag(explain([$f->complaints]));
	$api->stop;
	$f->stop;
	$db->stop;
}
done_testing();
