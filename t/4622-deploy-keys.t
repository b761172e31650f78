#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Deploy keys from a real sshd: only the jobs of their project use them, and no step
# finds them; each failure says what to do.

use strict;
use warnings;
use MIME::Base64 qw(decode_base64 encode_base64);
use Slipway::Hook;
use Slipway::Sshd;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $sshd = Slipway::Sshd->start;
plan skip_all => "the account's shell permits no login" if !$sshd;
my $dir = tempdir();
make_repo("$dir/repo", 'echo one >file');
my $known = spew("$dir/known_hosts", $sshd->known, 0644);
chmod 0755, $dir;
my $port = $sshd->port;
my $git = "[gitserver]\ntype = git\nallowed_hosts = 127.0.0.1:$port\nssh_known_hosts = $known\n";
my $conf = "${git}[runner]\nslots = 1\npoll = 60\n";
my $all = Slipway::Whole->start(api => $git, runner => $conf);
my ($api, $db, $runner) = ($all->api, $all->db, $all->runner);

# The files that a step can read are no key and no file of slipway.
my $look = <<'END';
cat file
grep -rl 'PRIVATE [K]EY' ~ . "$SLIPWAY_CACHE" 2>/dev/null && echo 'A KEY IS' LEFT
find ~ . -name 'slipway-ssh*' -o -name 'slipway-known*' | sed 's/$/ IS LEFT/'
env | grep -i -e '^ssh' -e 'PRIVATE' && echo 'A NAME IS' LEFT
echo looked
END
my @projects = map { { id => $all->project($sshd->url("$dir/repo")) } } 1, 2;
$_->{pipeline} = $all->pipeline($_->{id}, $look) for @projects;
my ($one, $two) = @projects;
sub start {
	my ($project, %more) = @_;
	return $all->post(projectId => $project->{id}, pipelineId => $project->{pipeline}, %more);
}
sub key { my ($project) = @_; return "/api/projects/$project->{id}/deploy-key" }
sub runs {
	my ($project, $what) = @_;
	my $id = start($project);
	my $end = $all->wait($id);
	is($end->{status}, 'success', $what) or diag($end->{detail}, $all->log($id));
	my $log = $all->log($id);
	like($log, qr/^looked$/m, "$what: the step runs");
	unlike($log, qr/IS LEFT/, "$what: the step finds no key") or diag($log);
	return $end;
}
sub fails {
	my ($project, $why, $what) = @_;
	my $id = start($project);
	my $end = $all->wait($id);
	is("$end->{status} $end->{reason}", 'failed checkout_failed', $what)
	    or diag($end->{detail}, $all->log($id));
	like($end->{detail}, $why, "$what: the detail says what to do");
	return;
}

# --- ssh(1) requires that its account has a name, which a job can only add where its
# root is a mount point
my $without = qr/\(The project has no deploy key: create one in its settings, and add the public half/;
if (is_root() && $all->wait(start($one))->{detail} =~ /without a user name/) {
	note('as an account of the host');
	$runner->write_conf("$runner->{conf}job_user = backup\n")->restart;
}
fails($one, qr/Permission denied .*$without/, 'without a key');
spew($known, '');
fails($one, qr/an administrator must run slipway-admin known-host add 127\.0\.0\.1:$port\)/,
    'an unknown host');
spew($known, $sshd->known);

# --- a key opens the repository for its project alone
my $first = $api->put(key($one))->{json};
fails($one, qr/deploy key is \Q$first->{fingerprint}\E: add its public half to the repository/,
    'a key that the server does not know');
$sshd->authorize($first->{publicKey});
runs($one, 'a key that the server knows');
fails($two, $without, 'another project without a key');
my $other = $api->put(key($two))->{json};
fails($two, qr/deploy key is \Q$other->{fingerprint}\E/, 'another project with a key of its own');
$sshd->authorize($other->{publicKey});
runs($two, 'another project when the server knows its key');
fails($one, qr/Permission denied/, 'the first key when the server has forgotten it');

# --- keys that are replaced or deleted
my $second = $api->put(key($one))->{json};
$sshd->authorize($first->{publicKey});
fails($one, qr/deploy key is \Q$second->{fingerprint}\E/, 'a new key while the server knows the old one');
$sshd->authorize($second->{publicKey}, $other->{publicKey});
my $gate = "$dir/gate";
my $slow = start({ %$one, pipeline => $all->pipeline($one->{id},
	"echo begins; until [ -e $gate ]; do sleep 0.1; done") });
ok($all->saw($slow, qr/^begins$/m), 'a deployment with the new key runs');
is($api->delete(key($one))->{status}, 204, 'the key is deleted meanwhile');
spew($gate, '');
is($all->wait($slow)->{status}, 'success', 'the deployment is not disturbed');
fails($one, $without, 'the next deployment');

# --- keys that cannot be decrypted
sub sealed {
	my ($project) = @_;
	return $db->sql("SELECT sealed FROM deploy_key WHERE project_id = $project->{id}");
}
sub undecryptable {
	my ($sealed, $why, $what) = @_;
	$db->sql("UPDATE deploy_key SET sealed = '$sealed' WHERE project_id = $one->{id}");
	my $end = $all->wait(start($one));
	is("$end->{status} $end->{reason}", 'failed runner_error', "$what fails the deployment");
	like($end->{detail}, qr/deploy key cannot be decrypted \($why\): create a new one, and replace/,
	    "$what: the detail says what to do");
	return;
}
my $third = $api->put(key($one))->{json};
undecryptable(sealed($two), 'it was sealed for another place', 'the key of another project');
my $lost = decode_base64(sealed($two));
substr $lost, 1, 4, pack 'N', 77;
undecryptable(encode_base64($lost, ''), '[^)]*\b77\b[^)]*', 'a key that a lost key encrypted');
$third = $api->put(key($one))->{json};
$sshd->authorize($third->{publicKey});
runs($one, 'a new key in its place');

# --- pushes that were not delivered
my $repo = "$dir/repo";
my ($path) = $repo =~ m{([^/]+/[^/]+)$};
sub head { return (run_cmd('git', '-C', $repo, 'rev-parse', 'HEAD'))[1] =~ s/\n//r }
$api->put("/api/projects/$one->{id}", { triggers => [ { branch => 'main', pipelineId => $one->{pipeline},
	envVars => {} } ] });
my $hook = $api->put("/api/projects/$one->{id}/hook-secret")->{json}{secret};
my ($headers, $body) = push_event(gitea => $hook, branch => 'main', path => $path, commit => head());
my $got = $api->as('none')->post("/api/hooks/$one->{id}", $body, $headers);
is($got->{status}, 202, 'a push is accepted') or diag($got->{body});
is($all->wait($got->{json}{data}[0]{id})->{status}, 'success',
    'the deployment of a push uses the deploy key');
run_cmd('git', '-C', $repo, '-c', 'user.name=a', '-c', 'user.email=a@example.org', 'commit', '-q',
    '--allow-empty', '-m', 'two');
$runner->write_conf("$runner->{conf}catch_up = 1\n")->restart;
my $caught;
ok(poll(120, sub {
	($caught) = @{ $api->get("/api/deployments?projectId=$one->{id}&limit=1")->{json}{data} };
	return $caught->{trigger} eq 'webhook' && $caught->{commitHash} eq head();
}), 'the runner finds a push that was not delivered with the deploy key') or diag($runner->said);
is($all->wait($caught->{id})->{status}, 'success', 'the push that was not delivered is deployed');

# --- logs
sub private_half {
	my ($project) = @_;
	my ($status, $out, $err) = run_cmd(
	    { stdin => "deploy key of project $project->{id}\t" . sealed($project) . "\n" },
	    program('t/unit/sealer'), 'private-unseal', "$dir/keys/deploy.key");
	like($out, qr{BEGIN}, 'a key in use can be decrypted') or diag("$status $out$err");
	return (split /\n/, $out)[ 1 .. 5 ];
}
my @private = map { private_half($_) } $one, $two;
is(scalar(grep { length > 20 } @private), 10, 'the keys in use are known');
my $logs = join '', $runner->said, map { slurp($_) } glob "$dir/*.log";
is(scalar(grep { index($logs, $_) >= 0 } @private), 0, 'no log contains a private half');
done_testing;
