#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Whose repositories a user sees: those that the Git server shows to the user's
# account there, or to the service where the user has none, and never what it
# has shown to somebody else.

use strict;
use warnings;
use POSIX ();
use Test::More;
use Time::HiRes qw(time);
use Slipway::API;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;

for my $type (qw(gitea gitlab)) {
	note($type);
	my $db = Slipway::DB->start;
	my $f = Slipway::Forge->start(type => $type);
	$f->user($_) for qw(ann eve bot);
	my %repo = (ann => $f->repo('team/ann', private => 1, users => ['ann']), eve => $f->repo('team/eve', private => 1, users => ['eve']),
		bot => $f->repo('team/bot', private => 1, users => ['bot']), open => $f->repo('team/open'));
	my %tip = map { $_ => $repo{$_}->commit('main', {}, "for $_") } keys %repo;
	my $key = tempdir() . "/$type.key";
	my $start = sub {
		my (%more) = @_;
		my $conf = $f->conf(timeout => 9, %more) . "[secrets]\nkey_file = $key\n";
		if (!-e $key) {
			my $file = spew(tempdir() . "/$type.conf", $db->conf . $conf, 0600);
			ok(make_keys($file, $key), 'slipway-admin key creates the keys for secrets');
			chmod 0640, $key;
		}
		return Slipway::API->start(db => $db, conf => $conf);
	};
	my $api = $start->();
	my %as = (ann => $api->new_token('maintainer', 'ann'), map { $_ => $api->new_token('viewer', $_) } qw(eve nobody));
	my %p = map { $_ => $api->post('/api/projects', { name => $_, repository => $repo{$_}->clone_url })->{json}{id} } keys %repo;
	# What one gets of a project: the tip, or the status.
	my $sees = sub {
		my ($who, $what) = @_;
		my $got = $api->get("/api/git/branches?projectId=$p{$what}", { Authorization => "Bearer $as{$who}" });
		my $also = $api->get("/api/git/commits?projectId=$p{$what}", { Authorization => "Bearer $as{$who}" });
		is($also->{status}, $got->{status}, "$who, $what: commits like branches");
		return $got->{status} == 200 ? $got->{json}{data}[0]{commitHash} : $got->{status};
	};
	my $give = sub {
		my ($who, $seconds) = @_;
		my ($access, $refresh) = $f->token($who, expires => 3600, refresh => 1);
		my ($status, $out, $err) = run_cmd(program('t/unit/access_probe'), $api->conf_file, 'put',
		    $db->sql("SELECT id FROM user WHERE username = '$who'") =~ /(\d+)/, $access, $refresh, $seconds || 3600);
		like($out, qr/^put/, "a token of $who") or diag($err);
		return $access;
	};

	is($sees->($_, 'open'), $tip{open}, "$_ sees what all see") for qw(ann nobody);
	is($sees->($_, 'ann'), 404, "$_ has not signed in at the Git server and does not see ann's") for qw(ann eve nobody);
	my %token = map { $_ => $give->($_) } qw(ann eve);
	for my $round (1 .. 2) {
		is($sees->('ann', 'ann'), $tip{ann}, 'ann sees her own');
		is($sees->('eve', 'ann'), 404, 'eve does not');
		is($sees->('nobody', 'ann'), 404, 'nor nobody');
		is($sees->('eve', 'eve'), $tip{eve}, 'eve sees her own');
		is($sees->('ann', 'eve'), 404, 'ann does not');
		is($sees->($_, 'bot'), 404, "$_ does not see the service's") for qw(ann eve nobody);
	}

	# --- nobody in particular, after a rename and with another in its place
	$repo{open}->rename('team/opened');
	is($sees->('nobody', 'open'), $tip{open}, 'anybody is led to the new path');
	is($sees->('ann', 'open'), $tip{open}, 'ann finds it by its number');
	my $usurper = $f->repo('team/open');
	$usurper->commit('main', {}, 'not it');
	is($sees->($_, 'open'), $tip{open}, "$_ is not led astray") for qw(ann nobody);
	# who may not see the renamed one must not make all others take the wrong one
	$repo{ann}->rename('team/anns');
	is($sees->('ann', 'ann'), $tip{ann}, 'ann finds hers, renamed');
	my $trap = $f->repo('team/ann');
	$trap->commit('main', {}, 'a trap');
	is($sees->('eve', 'ann'), 404, 'eve, who may not see it, is not shown what has its old name');
	like($db->sql("SELECT path FROM git_repo WHERE project_id = $p{ann}"), qr{^team/anns$}m, 'nor does she change what is known');
	is($sees->('ann', 'ann'), $tip{ann}, 'ann still finds hers');
	my $told = sub { my ($who, $what) = @_; return $api->get("/api/git/branches?projectId=$p{$what}", { Authorization => "Bearer $as{$who}" })->{json}{detail} };
	like($told->('nobody', 'ann'), qr/was renamed or removed .*\S; the request was anonymous\. Sign in/, 'nobody hears why, and that signing in may help');
	unlike($told->('eve', 'ann'), qr/anonymous/, 'eve was not taken for anybody');
	$trap->remove;

	# --- tokens end
	$f->expire_tokens('ann');
	$f->forget_requests;
	is($sees->('ann', 'ann'), $tip{ann}, 'a token that has expired is refreshed');
	is(scalar(grep { $_->{body} =~ /refresh_token/ } $f->requests), 1, 'once, for both requests');
	# --- several at once: one refresh, also where the old pair dies by it
	$f->expire_tokens('ann');
	$f->forget_requests;
	my @pids = map {
		my $n = $_;
		my $pid = fork;
		if (!$pid) {
			my (undef, $got) = run_cmd('curl', '-s', '--cacert', $api->cacert, '-H', "Authorization: Bearer $as{ann}",
			    $api->url . "/api/git/branches?projectId=$p{ann}");
			spew(tempdir() . "/$type-at-once$n", $got);
			POSIX::_exit(0);
		}
		$pid;
	} 1 .. 3;
	waitpid $_, 0 for @pids;
	like(slurp(tempdir() . "/$type-at-once$_"), qr/"commitHash":"$tip{ann}"/, 'one of three at once, with a token that was revoked') for 1 .. 3;
	is(scalar(grep { $_->{body} =~ /refresh_token/ } $f->requests), 1, 'and one refresh for all');
	# --- too late for a refresh: one that is cut off may have ended the pair
	$f->expire_tokens('ann');
	$f->forget_requests;
	$f->fault(qr{/(?:repositories|projects)/}, kind => 'delay', seconds => $f->patience - 2.5, times => 1);
	my $late = $api->get("/api/git/branches?projectId=$p{ann}", { Authorization => "Bearer $as{ann}" });
	is($late->{status}, 504, 'a server that is slow to refuse a token') or diag($late->{body});
	like($late->{json}{detail}, qr/too slow to renew|not answer in time/, 'in words');
	is(scalar(grep { $_->{body} =~ /refresh_token/ } $f->requests), 0, 'is not asked for another with no time left');
	is($sees->('ann', 'ann'), $tip{ann}, 'the next request has the time');
	$f->expire_tokens('ann');
	$f->drop_refresh_tokens;
	my $got = $api->get("/api/git/branches?projectId=$p{ann}", { Authorization => "Bearer $as{ann}" });
	is($got->{status}, 502, 'one that cannot be') or diag($got->{body});
	like($got->{json}{detail}, qr/sign in again/, 'says what to do');
	is($sees->('ann', $_), 502, "the same for what is open to all: $_") for qw(ann open);
	$api->stop;

	$api = $start->(token => scalar $f->token('bot'));
	is($sees->('nobody', 'bot'), $tip{bot}, 'nobody has no account at the Git server and sees what the service sees');
	is($sees->('ann', $_), 502, "ann, whose token has ended, does not: $_") for qw(bot ann open);
	is($sees->('eve', 'bot'), 404, 'eve has one');
	is($sees->('eve', 'eve'), $tip{eve}, 'which still works');
	$f->expire_tokens('eve');
	unlike($told->('eve', 'ann'), qr/anonymous/, 'when it has just ended, it is not anybody who is not shown a repository');
	$f->drop_refresh_tokens;
	is($sees->('eve', $_), 502, "when it has ended, the service does not stand in for her: $_") for qw(bot eve open);

	# --- a refresh that takes its time counts too
	$give->('ann', 1);
	$f->expire_tokens('ann');
	$f->fault('/oauth/', kind => 'delay', seconds => 0.9 * $f->patience);
	$f->fault('branches', kind => 'delay', seconds => 0.9 * $f->patience);
	my $from = time;
	$got = $api->get("/api/git/branches?projectId=$p{ann}", { Authorization => "Bearer $as{ann}" });
	my $took = time - $from;
	is($got->{status}, 504, 'a slow refresh and a slow list') or diag($got->{body});
	cmp_ok($took, '<', deadline(15), sprintf 'end in time together: %.1f s', $took);
	$f->clear_faults;
	is($sees->('ann', 'ann'), $tip{ann}, 'and the refresh was not lost');

	unlike($api->log, qr/\Q$_\E/, 'no token stands in the log') for values %token;
	is_deeply([$f->complaints], [], 'nothing was sent that the server would not take') or diag(explain([$f->complaints]));
	$api->stop;
	$f->stop;
	$db->stop;
}
done_testing();
