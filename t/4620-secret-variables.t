#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Secret variables from the request to the step that uses them, through an API that
# cannot decrypt them: by request, push and retry; with rotated or missing keys, and
# with values that were moved or damaged in the database.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use JSON::PP ();
use MIME::Base64 qw(decode_base64);
use Slipway::Hook;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $true = JSON::PP::true;
my $json = Cpanel::JSON::XS->new->canonical;
my $all = Slipway::Whole->start(
    api => "[api]\nworkers = 1\n[secrets]\ndeploy_key_file = /nonexistent/deploy.key\n");
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);
my $keys = tempdir() . '/keys';
my $private = "$keys/deploy.key";
ok(-e $private && !-e '/nonexistent', 'the dispatcher has the private key, the API does not');

# --- a project whose step prints checksums of its values
sub preset {
	my ($key, %more) = @_;
	return { key => $key, label => $key, type => 'input', secret => $true, %more }
}
my @sums = map { "printf '$_ %s\\n' \"\$(printf %s \"\$$_\" | cksum)\"" } qw(FIXED GIVEN);
sub sum { my ($text) = @_; return (split /\n/, (run_cmd({ stdin => $text }, 'cksum'))[1])[0] }
sub says { my ($log, %want) = @_; return !grep { $log !~ /^\Q$_ @{[sum($want{$_})]}\E$/m } keys %want }
my $repo = $runner->repo;
my $project = $all->project($repo,
    envPresets => [ preset('FIXED', default => 'fixed tuna 1'), preset('GIVEN') ]);
my $pipeline = $all->pipeline($project, join "\n", @sums);
sub change {
	my (%more) = @_;
	my $got = $api->put("/api/projects/$project", \%more);
	is($got->{status}, 200, 'the project is changed') or diag($got->{body});
	return;
}
change(triggers => [ { branch => 'main', pipelineId => $pipeline,
    envVars => { GIVEN => 'pushed perch 1' } } ]);
sub post {
	my (%vars) = @_;
	return $all->post(projectId => $project, pipelineId => $pipeline, envVars => \%vars);
}
# Expects that a deployment succeeds with these values.
sub ran {
	my ($id, $what, %want) = @_;
	my $end = $all->wait($id);
	is($end->{status}, 'success', $what) or diag($end->{detail}, $runner->said);
	ok(says($all->log($id), %want), "$what: the step has the values") or diag($all->log($id));
	return $id;
}
my $posted = ran(post(GIVEN => 'given bass 1'), 'a deployment by request succeeds', FIXED => 'fixed tuna 1',
    GIVEN => 'given bass 1');
sub retry { my ($id) = @_; return $api->post("/api/deployments/$id/retry")->{json}{id} }
ran(retry($posted), 'a deployment by retry succeeds', FIXED => 'fixed tuna 1', GIVEN => 'given bass 1');
my $hook = $api->put("/api/projects/$project/hook-secret")->{json}{secret};
my ($path) = $repo =~ m{([^/]+/[^/]+)$};
my ($hash) =
    (run_cmd('git', '-c', "safe.directory=$repo", '-C', $repo, 'rev-parse', 'HEAD'))[1] =~ /^(\w+)$/m;
sub pushed {
	my ($headers, $body) = push_event(gitea => $hook, branch => 'main', path => $path, commit => $hash);
	my $got = $api->as('none')->post("/api/hooks/$project", $body, $headers);
	is($got->{status}, 202, 'a push is accepted') or diag($got->{body});
	return $got->{json}{data}[0]{id};
}
ran(retry(ran(pushed(), 'a deployment by push succeeds', FIXED => 'fixed tuna 1', GIVEN => 'pushed perch 1')),
    'a retry of a deployment by push succeeds',
    FIXED => 'fixed tuna 1', GIVEN => 'pushed perch 1');

# --- rotated keys: values encrypted with the old key can be decrypted
make_keys("$keys/slipway.conf", "$keys/secret.key");
my @old = $api->workers;
kill 'HUP', $api->pid;
ok(poll(20, sub { my %old = map { $_ => 1 } @old; my @now = $api->workers; @now && !grep { $old{$_} } @now }),
    'the API loads the new key');
my $newest = post(GIVEN => 'given bass 2');
ran($newest, 'a value with the new key and a default with the old key can be decrypted',
    FIXED => 'fixed tuna 1',
    GIVEN => 'given bass 2');
sub numbers {
	my ($id) = @_;
	my $vars = $json->decode($db->sql("SELECT secret_vars FROM deployment WHERE id = $id"));
	return { map { $_ => unpack 'xN', decode_base64($vars->{$_}) } keys %$vars };
}
is_deeply(numbers($newest), { FIXED => 1, GIVEN => 2 }, 'each value names its key');
ran(pushed(), 'a push after the rotation succeeds', FIXED => 'fixed tuna 1', GIVEN => 'pushed perch 1');
ran(retry($posted), 'a retry after the rotation succeeds', FIXED => 'fixed tuna 1', GIVEN => 'given bass 1');

# --- a value that cannot be decrypted fails the deployment
sub ends {
	my ($id, $why, $what) = @_;
	my $end = $all->wait($id);
	is("$end->{status} $end->{reason}", 'failed runner_error', "$what fails the deployment");
	like($end->{detail}, $why, "$what: the detail gives the cause");
	unlike($end->{detail}, qr{/|tuna|perch|bass}, "$what: the detail contains no path and no value");
	return;
}
sub secrets { return $json->decode($db->sql("SELECT secret_defaults FROM project WHERE id = $project")) }
sub put_secrets {
	my ($text) = @_;
	$db->sql("UPDATE project SET secret_defaults = '$text' WHERE id = $project");
	return;
}
my $good = $json->encode(secrets());
change(envPresets => [ preset('FIXED'), preset('GIVEN', default => 'given default') ]);
my ($fixed, $given) = @{ secrets() }{qw(FIXED GIVEN)};
put_secrets($json->encode({ FIXED => $given, GIVEN => $fixed }));
my $moved = qr/cannot be decrypted \(it was sealed for another place\): set the value again/;
ends(post(), qr/secret variable (?:FIXED|GIVEN) $moved/, 'a value moved to another name');
my $other = $all->project($runner->repo, projectDir => 'elsewhere',
    envPresets => [ preset('FIXED', default => 'other tuna') ]);
my $foreign = $json->decode($db->sql("SELECT secret_defaults FROM project WHERE id = $other"))->{FIXED};
put_secrets($json->encode({ FIXED => $foreign }));
ends(post(), qr/FIXED cannot be decrypted \(it was sealed for another place\)/, 'a value of another project');
for my $case ([ 'truncated', substr($fixed, 0, -8), qr/it is damaged/ ],
    [ 'with a changed bit', $fixed =~ s/(.{40})(.)/$1 . ($2 eq 'A' ? 'B' : 'A')/er, qr/it is damaged/ ],
	[ 'of a few bytes', substr($fixed, 0, 16), qr/it is not a sealed value/ ],
	[ 'of length zero', '', qr/it is not a sealed value/ ],
	[ 'in plain text', 'plain value', qr/it is not a sealed value/ ]) {
	my ($what, $value, $why) = @$case;
	put_secrets($json->encode({ FIXED => $value }));
	ends(post(GIVEN => 'x'), qr/secret variable FIXED cannot be decrypted \($why\)/, "a value $what");
}
put_secrets($json->encode({ FIXED => undef }));
ran(post(GIVEN => 'x'), 'null instead of a value is no value', GIVEN => 'x');
put_secrets($json->encode({ FIXED => $fixed }));
my $id = post(GIVEN => 'y');
ran($id, 'the restored value can be decrypted', FIXED => 'fixed tuna 1', GIVEN => 'y');

# --- the private key is missing or readable by others
my $plain = $all->project($runner->repo, projectDir => 'plain');
$all->pipeline($plain, 'echo plain');
for my $case ([ 'missing', sub { rename $private, "$private.away" or die },
    sub { rename "$private.away", $private or die }, qr/is missing/ ],
	[ 'readable by others', sub { chmod 0444, $private }, sub { chmod 0400, $private },
	    qr/mode 444 is too permissive/ ],
	[ 'another key', sub { rename $private, "$private.away"
	    or die; spew($private, (split /\n/, slurp("$private.away"))[0] . "\n", 0400);
		chown +(stat "$private.away")[4, 5], $private },
		    sub { rename "$private.away", $private or die }, undef ]) {
	my ($what, $break, $mend, $said) = @$case;
	$break->();
	my $failed = retry($id);
	ends($failed, $said ? qr/the runner cannot read the key file/
	    : qr/it was sealed with key 1, which the key file lacks/, "a private key that is $what");
	like($runner->said, $said, "a private key that is $what is logged") if $said;
	is($all->wait($all->post(projectId => $plain))->{status}, 'success',
	    "a private key that is $what: a deployment without secrets succeeds");
	$mend->();
	ran(retry($failed), 'a deployment with the restored private key succeeds', FIXED => 'fixed tuna 1',
	    GIVEN => 'y');
}

# --- no secret in plain text
my $fish = qr/ (?:tuna|perch|bass)/; # no base64 has a blank
unlike($api->log . $runner->said, $fish, 'no log contains a value');
unlike($db->sql('SELECT env_presets, triggers, secret_defaults, trigger_secrets FROM project')
    . $db->sql('SELECT env_vars, secret_vars, detail FROM deployment'), $fish,
    'the database contains no value in plain text');
$_->stop for $api, $runner, $db;
done_testing;
