#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Secret variables from where they are told to the step that has them, past an
# API that has no key to open them: by request, by push, by retry; with keys
# that are turned or lost, and with values that somebody moved or damaged in
# the database.

use strict;
use warnings;
use JSON::PP ();
use MIME::Base64 qw(decode_base64);
use Slipway::Hook;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $true = JSON::PP::true;
my $json = JSON::PP->new->canonical;
my $all = Slipway::Whole->start(api => "[api]\nworkers = 1\n[secrets]\ndeploy_key_file = /nonexistent/deploy.key\n");
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my $keys = tempdir() . '/keys';
my $private = "$keys/deploy.key";
ok(-e $private && !-e '/nonexistent', 'the dispatcher has the private half, the API has none');

# --- a project whose step says which values it got, by their sums
sub preset { my ($key, %more) = @_; return { key => $key, label => $key, type => 'input', secret => $true, %more } }
my @sums = map { "printf '$_ %s\\n' \"\$(printf %s \"\$$_\" | cksum)\"" } qw(FIXED GIVEN);
sub sum { my ($text) = @_; return (split /\n/, (run_cmd({ stdin => $text }, 'cksum'))[1])[0] }
sub says { my ($log, %want) = @_; return !grep { $log !~ /^\Q$_ @{[sum($want{$_})]}\E$/m } keys %want }
my $repo = $runner->repo;
my $project = $all->project($repo, envPresets => [ preset('FIXED', default => 'fixed tuna 1'), preset('GIVEN') ]);
my $pipeline = $all->pipeline($project, join "\n", @sums);
sub change {
	my (%more) = @_;
	my $got = $api->put("/api/projects/$project", \%more);
	is($got->{status}, 200, 'the project is changed') or diag($got->{body});
	return;
}
change(triggers => [ { branch => 'main', pipelineId => $pipeline, envVars => { GIVEN => 'pushed perch 1' } } ]);
sub post { my (%vars) = @_; return $all->post(projectId => $project, pipelineId => $pipeline, envVars => \%vars) }
sub ran {
	my ($id, $what, %want) = @_;
	my $end = $all->wait($id);
	is($end->{status}, 'success', $what) or diag($end->{detail}, $runner->said);
	ok(says($all->log($id), %want), 'the step had the values') or diag($all->log($id));
	return $id;
}
my $posted = ran(post(GIVEN => 'given bass 1'), 'by request', FIXED => 'fixed tuna 1', GIVEN => 'given bass 1');
sub retry { my ($id) = @_; return $api->post("/api/deployments/$id/retry")->{json}{id} }
ran(retry($posted), 'by retry', FIXED => 'fixed tuna 1', GIVEN => 'given bass 1');
my $hook = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
my ($path) = $repo =~ m{([^/]+/[^/]+)$};
my ($hash) = (run_cmd('git', '-c', "safe.directory=$repo", '-C', $repo, 'rev-parse', 'HEAD'))[1] =~ /^(\w+)$/m;
sub pushed {
	my ($headers, $body) = push_event(gitea => $hook, branch => 'main', path => $path, commit => $hash);
	my $got = $api->as('none')->post("/api/hooks/$project", $body, $headers);
	is($got->{status}, 202, 'a push') or diag($got->{body});
	return $got->{json}{data}[0]{id};
}
ran(retry(ran(pushed(), 'by push', FIXED => 'fixed tuna 1', GIVEN => 'pushed perch 1')), 'and a retry of that',
    FIXED => 'fixed tuna 1', GIVEN => 'pushed perch 1');

# --- keys are turned: what the old one sealed opens still
make_keys("$keys/slipway.conf", "$keys/secret.key");
my @old = $api->workers;
kill 'HUP', $api->pid;
ok(poll(20, sub { my %old = map { $_ => 1 } @old; my @now = $api->workers; @now && !grep { $old{$_} } @now }), 'the API takes up the new key');
my $newest = post(GIVEN => 'given bass 2');
ran($newest, 'a value by the new key beside a default by the old one', FIXED => 'fixed tuna 1', GIVEN => 'given bass 2');
sub numbers {
	my ($id) = @_;
	my $vars = $json->decode($db->sql("SELECT secret_vars FROM deployment WHERE id = $id"));
	return { map { $_ => unpack 'xN', decode_base64($vars->{$_}) } keys %$vars };
}
is_deeply(numbers($newest), { FIXED => 1, GIVEN => 2 }, 'each says its key');
ran(pushed(), 'a push', FIXED => 'fixed tuna 1', GIVEN => 'pushed perch 1');
ran(retry($posted), 'a retry', FIXED => 'fixed tuna 1', GIVEN => 'given bass 1');

# --- what does not open ends the deployment, and says why
sub ends {
	my ($id, $why, $what) = @_;
	my $end = $all->wait($id);
	is("$end->{status} $end->{reason}", 'failed runner_error', $what);
	like($end->{detail}, $why, 'it says why');
	unlike($end->{detail}, qr{/|tuna|perch|bass}, 'without a path or a value');
	return;
}
sub secrets { return $json->decode($db->sql("SELECT secret_defaults FROM project WHERE id = $project")) }
sub put_secrets { my ($text) = @_; $db->sql("UPDATE project SET secret_defaults = '$text' WHERE id = $project"); return }
my $good = $json->encode(secrets());
change(envPresets => [ preset('FIXED'), preset('GIVEN', default => 'given default') ]);
my ($fixed, $given) = @{ secrets() }{qw(FIXED GIVEN)};
put_secrets($json->encode({ FIXED => $given, GIVEN => $fixed }));
ends(post(), qr/secret variable (?:FIXED|GIVEN) does not open \(it was sealed for another place\): give the value anew/, 'values of two names, exchanged');
my $other = $all->project($runner->repo, projectDir => 'elsewhere', envPresets => [ preset('FIXED', default => 'other tuna') ]);
my $foreign = $json->decode($db->sql("SELECT secret_defaults FROM project WHERE id = $other"))->{FIXED};
put_secrets($json->encode({ FIXED => $foreign }));
ends(post(), qr/FIXED does not open \(it was sealed for another place\)/, 'a value of another project');
for my $case ([ 'cut short', substr($fixed, 0, -8), qr/it is damaged/ ], [ 'with a bit changed', $fixed =~ s/(.{40})(.)/$1 . ($2 eq 'A' ? 'B' : 'A')/er, qr/it is damaged/ ],
	[ 'of a few bytes', substr($fixed, 0, 16), qr/it is not a sealed value/ ], [ 'of nothing', '', qr/it is not a sealed value/ ],
	[ 'in the open', 'plain value', qr/it is not a sealed value/ ]) {
	my ($what, $value, $why) = @$case;
	put_secrets($json->encode({ FIXED => $value }));
	ends(post(GIVEN => 'x'), qr/secret variable FIXED does not open \($why\)/, "a value $what");
}
put_secrets($json->encode({ FIXED => undef }));
ran(post(GIVEN => 'x'), 'null is no value', GIVEN => 'x');
put_secrets($json->encode({ FIXED => $fixed }));
my $id = post(GIVEN => 'y');
ran($id, 'the right value again', FIXED => 'fixed tuna 1', GIVEN => 'y');

# --- the private half is gone, or open to others
my $plain = $all->project($runner->repo, projectDir => 'plain');
$all->pipeline($plain, 'echo plain');
for my $case ([ 'gone', sub { rename $private, "$private.away" or die }, sub { rename "$private.away", $private or die }, qr/is missing/ ],
	[ 'open to others', sub { chmod 0444, $private }, sub { chmod 0400, $private }, qr/mode 444 lets others at it/ ],
	[ 'another', sub { rename $private, "$private.away" or die; spew($private, (split /\n/, slurp("$private.away"))[0] . "\n", 0400);
		chown +(stat "$private.away")[4, 5], $private }, sub { rename "$private.away", $private or die }, undef ]) {
	my ($what, $break, $mend, $said) = @$case;
	$break->();
	my $failed = retry($id);
	ends($failed, $said ? qr/the runner cannot read the key for them/ : qr/it was sealed with key 1, which the key file lacks/, "the private half is $what");
	like($runner->said, $said, 'the log says more') if $said;
	is($all->wait($all->post(projectId => $plain))->{status}, 'success', 'what has no secrets runs');
	$mend->();
	ran(retry($failed), 'with the key again', FIXED => 'fixed tuna 1', GIVEN => 'y');
}

# --- nowhere
my $fish = qr/ (?:tuna|perch|bass)/; # no base64 has a blank
unlike($api->log . $runner->said, $fish, 'no log of a program has a value');
unlike($db->sql('SELECT env_presets, triggers, secret_defaults, trigger_secrets FROM project') . $db->sql('SELECT env_vars, secret_vars, detail FROM deployment'), $fish,
    'nor has the database');
$_->stop for $api, $runner, $db;
done_testing;
