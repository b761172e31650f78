#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Secrets that a project stores: defaults of its presets and variables of its
# triggers.  They can be set and used, and are never returned.

use strict;
use warnings;
use Cpanel::JSON::XS ();
use JSON::PP ();
use Slipway::API qw(outcome);
use Slipway::DB;
use Slipway::Test;
use Test::More;
use Time::HiRes qw(time);

my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db, conf => "[api]\nworkers = 1\n");
my $n = 0;
sub key { make_keys($api->conf_file, $api->dir . '/secret.key'); return restart() }
sub restart { $api->stop_api; $api->start_api; return }
sub project {
	my (%more) = @_;
	$n++;
	my $got = $api->post('/api/projects',
	    { name => "p$n", repository => 'https://git.example.org/o/p.git', %more });
	diag($got->{body}) if $got->{status} != 201;
	return $got->{json}{id};
}
sub pipeline {
	my ($project) = @_;
	return $api->post('/api/pipelines', { projectId => $project, name => 'l',
		steps => [ { name => 's', script => 'true' } ] })->{json}{id};
}
sub preset { my ($key, %more) = @_; return { key => $key, label => $key, type => 'input', %more } }
sub stored {
	my ($id, $column) = @_;
	return $db->sql("SELECT COALESCE(LENGTH($column), 0) FROM project WHERE id = $id");
}

# Decrypts what the database stores for the dispatcher, as the dispatcher does.
sub unsealed {
	my ($project, $text) = @_;
	return {} if $text eq '';
	my ($status, $out, $err) = run_cmd({ stdin => $text }, program('t/unit/unseal'),
	    $api->dir . '/deploy.key', $project);
	is($status, 0, 'the stored secrets can be decrypted') or diag($err);
	return Cpanel::JSON::XS->new->utf8->decode($out);
}
sub opened {
	my ($id) = @_;
	return unsealed(split /\t/,
	    $db->sql("SELECT project_id, COALESCE(secret_vars, '') FROM deployment WHERE id = $id"), -1);
}

# --- without a key
my $got = $api->post('/api/projects', { name => 'none', repository => 'https://git.example.org/o/p.git',
	envPresets => [ preset('TOKEN', secret => $true, default => 'swordfish-1') ] });
is($got->{status}, 503, 'a secret default without a key file returns 503');
like($got->{json}{detail}, qr/slipway-admin key/, 'the error names slipway-admin key');
is($db->sql("SELECT COUNT(*) FROM project WHERE name = 'none'"), 0, 'the project is not created');
my $plain = project(envPresets => [ preset('TOKEN', secret => $true) ]);
ok($plain, 'a secret preset without a default needs no key file');
is($api->put("/api/projects/$plain",
    { envPresets => [ preset('TOKEN', secret => $true, default => '') ] })->{status},
    200, 'an empty secret default needs no key file');
key();

# --- defaults
my $p = project(envPresets => [ preset('TOKEN', secret => $true, default => 'swordfish-1', required => $true),
	preset('OPEN', default => 'seen') ]);
my $l = pipeline($p);
my $read = $api->get("/api/projects/$p");
is($read->{json}{envPresets}[0]{default}, undef, 'a secret default reads as null');
is($read->{json}{envPresets}[1]{default}, 'seen', 'another default reads as its value');
cmp_ok(stored($p, 'secret_defaults'), '>', 40, 'a secret default is stored');
is($db->sql("SELECT COUNT(*) FROM project WHERE id = $p AND (secret_defaults LIKE '%sword%' OR env_presets "
    . "LIKE '%sword%')"), 0, 'a secret default is stored encrypted');
sub deploy { my (%vars) = @_; return $api->post('/api/deployments', { projectId => $p, envVars => \%vars }) }
$got = deploy();
is($got->{status}, 201, 'a deployment without the variable is accepted') or diag($got->{body});
is_deeply($got->{json}{envVars}, { TOKEN => undef, OPEN => 'seen' },
    'the secret default reads as null in a deployment');
is_deeply(opened($got->{json}{id}), { TOKEN => 'swordfish-1' }, 'the runner can decrypt the secret default');
my $retry = $api->post("/api/deployments/$got->{json}{id}/retry")->{json}{id};
is_deeply(opened($retry), { TOKEN => 'swordfish-1' }, 'a retry has the secret default');
is_deeply(opened(deploy(TOKEN => 'given-one')->{json}{id}), { TOKEN => 'given-one' },
    'a value in the request replaces the secret default');
$api->put("/api/projects/$p", { description => 'words' });
is_deeply(opened(deploy()->{json}{id}), { TOKEN => 'swordfish-1' },
    'a change of another member keeps the secret default');
$read = $api->get("/api/projects/$p");
$got = $api->put("/api/projects/$p", { envPresets => $read->{json}{envPresets} });
is($got->{status}, 200, 'PUT accepts the presets that GET returned');
is_deeply(opened(deploy()->{json}{id}), { TOKEN => 'swordfish-1' }, 'null keeps a secret default');
$api->put("/api/projects/$p",
    { envPresets => [ preset('OTHER', default => 'x'), preset('TOKEN', secret => $true) ] });
is_deeply(opened(deploy()->{json}{id}), { TOKEN => 'swordfish-1' },
    'a preset without a default keeps it, wherever it moves in the list');
$api->put("/api/projects/$p",
    { envPresets => [ preset('TOKEN', secret => $true, default => 'swordfish-2') ] });
is_deeply(opened(deploy()->{json}{id}), { TOKEN => 'swordfish-2' },
    'a new secret default replaces the old one');
is_deeply(opened($retry), { TOKEN => 'swordfish-1' },
    'a new secret default does not change an existing deployment');
$got = $api->put("/api/projects/$p",
    { envPresets => [ preset('TOKEN', secret => $true, required => $true, pattern => '[0-9]+') ] });
is(outcome($got), '422 /envPresets/0/default', 'a new pattern requires the secret default again');
unlike($got->{body}, qr/sword/, 'the error does not contain the secret default');
my ($no, @guesses) = $got->{body} =~ s/[0-9a-f]{32}//r;
for ('s.*', 'swordfish-2', '.*', '[0-9]+', 'x') {
	my $guess = $api->put("/api/projects/$p",
	    { envPresets => [ preset('TOKEN', secret => $true, required => $true, pattern => $_) ] });
	push @guesses, $guess->{body} =~ s/[0-9a-f]{32}//r;
}
is_deeply(\@guesses, [ ($no) x 5 ],
    'the response does not depend on the pattern, so patterns cannot guess the secret default');
$got = $api->put("/api/projects/$p",
    { envPresets => [ preset('TOKEN', secret => $true, pattern => 's.*', default => 'swordfish-2') ] });
is($got->{status}, 200, 'a new pattern is accepted with the secret default');
$got = $api->put("/api/projects/$p", { envPresets => $got->{json}{envPresets} });
is($got->{status}, 200, 'the same pattern keeps the secret default');
$got = $api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true) ] });
is($got->{status}, 200, 'removing the pattern keeps the secret default');
$got = $api->put("/api/projects/$p",
    { envPresets => [ preset('TOKEN', secret => $true, pattern => '[0-9]+', default => 'swordfish-3') ] });
is(outcome($got), '422 /envPresets/0/default', 'a secret default must match the pattern');
unlike($got->{body}, qr/sword/, 'the error does not contain the rejected default');
is_deeply(opened(deploy()->{json}{id}), { TOKEN => 'swordfish-2' },
    'a rejected change keeps the secret default');
$api->put("/api/projects/$p",
    { envPresets => [ preset('TOKEN', secret => $true, required => $true, default => '') ] });
is(stored($p, 'secret_defaults'), 0, 'an empty default deletes the secret default');
is(outcome(deploy()), '422 /envVars/TOKEN', 'without a secret default a required variable must be sent');
$api->put("/api/projects/$p",
    { envPresets => [ preset('TOKEN', secret => $true, default => 'swordfish-4') ] });
$got = $api->put("/api/projects/$p", { envPresets => [ preset('TOKEN') ] });
is($got->{json}{envPresets}[0]{default}, undef,
    'a preset that is no longer secret does not reveal its default');
is(stored($p, 'secret_defaults'), 0, 'a preset that is no longer secret loses its stored default');
$api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true) ] });
is_deeply(deploy()->{json}{envVars}, {},
    'a deleted secret default does not return when the preset is secret again');
$api->put("/api/projects/$p",
    { envPresets => [ preset('TOKEN', secret => $true, default => 'swordfish-5') ] });
$api->put("/api/projects/$p", { envPresets => [ preset('TOKEN2', secret => $true) ] });
is_deeply(deploy()->{json}{envVars}, {}, 'another key is another preset and has no default');
is($api->put("/api/projects/$p",
    { envPresets => [ preset('A', secret => $true, default => 'x' x 4097) ] })->{status},
    422, 'a secret default above 4,096 characters is rejected');
is($api->put("/api/projects/$p", { envPresets => [ preset('A', secret => $true, default => 7) ] })->{status},
    422, 'a secret default that is a number is rejected');
is($api->put("/api/projects/$p",
    { envPresets => [ preset('A', secret => $true, type => 'select', default => 'y',
	options => [ { label => 'y', value => 'y' } ]) ] })->{status}, 422,
	    'a select preset cannot be secret');
$got = $api->put("/api/projects/$p",
    { envPresets => [ map { preset("S$_", secret => $true, default => "\x{1F511}" x 4096) } 1 .. 40 ] });
is(outcome($got), '422 /envPresets', 'secret defaults above the total limit are rejected');

# --- variables of triggers
my $secret = preset('TOKEN', secret => $true);
sub trigger { my ($branch, %vars) = @_; return { branch => $branch, pipelineId => $l, envVars => \%vars } }
sub triggers {
	my (@t) = @_;
	return $api->put("/api/projects/$p", { envPresets => [ $secret ], triggers => \@t });
}
sub hidden {
	return [ sort values %{ unsealed($p,
	    $db->sql("SELECT COALESCE(trigger_secrets, '') FROM project WHERE id = $p")) } ];
}
$got = triggers(trigger('main', TOKEN => 'marlin-1', STAGE => 'live'));
is($got->{status}, 200, 'a trigger with a secret is accepted') or diag($got->{body});
is_deeply($got->{json}{triggers}[0]{envVars}, { TOKEN => undef, STAGE => 'live' },
    'the secret of a trigger reads as null');
is_deeply(hidden(), ['marlin-1'], 'the secret of a trigger is stored encrypted');
is($db->sql("SELECT COUNT(*) FROM project WHERE id = $p AND triggers LIKE '%marlin%'"), 0,
    'the secret of a trigger is not stored in plain text');
$got = $api->put("/api/projects/$p", { triggers => $got->{json}{triggers} });
is($got->{status}, 200, 'PUT accepts the triggers that GET returned');
is_deeply(hidden(), ['marlin-1'], 'null keeps the secret of a trigger');
$api->put("/api/projects/$p", { name => 'renamed' });
is_deeply(hidden(), ['marlin-1'], 'a change of another member keeps the secret of a trigger');
triggers(trigger('x/*'), trigger('main', TOKEN => undef), trigger('main', TOKEN => 'marlin-2'));
is_deeply(hidden(), [qw(marlin-1 marlin-2)],
    'triggers with the same branch and pipeline are matched in order');
triggers(trigger('main', TOKEN => undef), trigger('main', TOKEN => undef));
is_deeply(hidden(), [qw(marlin-1 marlin-2)], 'triggers with the same branch and pipeline keep their secrets');
triggers(trigger('main', TOKEN => undef));
is_deeply(hidden(), ['marlin-1'], 'a removed trigger loses its secret');
is(outcome(triggers(trigger('main', TOKEN => undef), trigger('main', TOKEN => undef))),
    '422 /triggers/1/envVars/TOKEN', 'null without a stored secret is rejected');
is(outcome(triggers(trigger('other', TOKEN => undef))), '422 /triggers/0/envVars/TOKEN',
    'null for a trigger with another branch is rejected');
is(outcome(triggers(trigger('main', PLAIN => undef))), '422 /triggers/0/envVars/PLAIN',
    'null for a variable that is not secret is rejected');
is_deeply(hidden(), ['marlin-1'], 'a rejected change keeps the secrets of triggers');
$got = $api->put("/api/projects/$p", { envPresets => [ preset('TOKEN') ] });
is(outcome($got), '422 /triggers/0/envVars/TOKEN',
    'a preset that is no longer secret requires the value again');
$got = triggers(trigger('main', TOKEN => 'marlin-3', PLAIN => 'open-one'));
$got = $api->put("/api/projects/$p", { envPresets => [ $secret, preset('PLAIN', secret => $true) ] });
is($got->{status}, 200, 'a preset can become secret') or diag($got->{body});
is_deeply($got->{json}{triggers}[0]{envVars}, { TOKEN => undef, PLAIN => undef },
    'values of a preset that became secret read as null');
is_deeply(hidden(), [qw(marlin-3 open-one)], 'values of a preset that became secret are encrypted');
$got = $api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true, pattern => 'm.*') ],
    triggers => [ trigger('main', TOKEN => 'shark-1') ] });
is(outcome($got), '422 /triggers/0/envVars/TOKEN',
    'the secret of a trigger must match the pattern of its preset');
unlike($got->{body}, qr/shark|marlin/, 'the error does not contain the secret of a trigger');
for my $guess ('m.*', 'x.*', '.*') {
	$got = $api->put("/api/projects/$p",
	    { envPresets => [ preset('TOKEN', secret => $true, pattern => $guess),
	    preset('PLAIN', secret => $true) ] });
	is(outcome($got), '422 /triggers/0/envVars/TOKEN',
	    "the pattern $guess cannot guess the secret of a trigger");
}
is_deeply(hidden(), [qw(marlin-3 open-one)], 'rejected patterns keep the secrets of triggers');
$api->put("/api/projects/$p",
    { envPresets => [ preset('NEED', secret => $true, required => $true, default => 'tuna-1') ],
    triggers => [ trigger('main') ] });
is($api->get("/api/projects/$p")->{json}{triggers}[0]{branch}, 'main',
    'a trigger may omit a required variable with a stored default');
$api->put("/api/projects/$p", { triggers => [] });
is(stored($p, 'trigger_secrets'), 0, 'a project without triggers has no trigger secrets');

# --- branches of triggers
is(triggers(trigger($_))->{status}, 200, "a trigger accepts the branch pattern $_")
    for 'main', 'release/*', '**', '*', 'v?.x', "f\x{fc}r/**/x", 'a-b_c.d';
is(outcome(triggers(trigger($_))), '422 /triggers/0/branch', "a trigger rejects the branch pattern $_")
    for '-x', '/x', 'x/', 'a..b', 'a b', 'a[bc]', '{a,b}~', 'x.lock', 'a\\b', '!:x', 'a//b';
like(triggers(trigger('a[bc]'))->{json}{errors}[0]{detail},
    qr/ ~\^:\[\\; the wildcards of a pattern are \*, \*\* and \?$/,
    'the error says which wildcards a pattern may have');
is(outcome(triggers({ branch => 'main', pipelineId => pipeline($plain) })), '422 /triggers/0/pipelineId',
    'a trigger rejects the pipeline of another project');

# --- the API does not have the private key and needs none
$api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true, default => 'perch-1') ],
	triggers => [ trigger('main', TOKEN => 'perch-2') ] });
rename $api->dir . '/deploy.key', $api->dir . '/private' or die;
restart();
my $made = deploy()->{json}{id};
$got = $api->put("/api/projects/$p",
    { triggers => [ trigger('main', TOKEN => undef), trigger('x', TOKEN => 'perch-3') ],
    description => 'kept' });
is($got->{status}, 200, 'without the private key the API keeps stored secrets and encrypts new ones')
    or diag($got->{body});
my $given = deploy(TOKEN => 'perch-4')->{json}{id};
rename $api->dir . '/private', $api->dir . '/deploy.key' or die;
is_deeply(opened($made), { TOKEN => 'perch-1' }, 'a secret default is copied to the deployment');
is_deeply(opened($given), { TOKEN => 'perch-4' }, 'a value in the request is encrypted');
is_deeply(hidden(), [qw(perch-2 perch-3)], 'the secrets of triggers are kept and encrypted');
my $copy = $db->sql("SELECT secret_defaults FROM project WHERE id = $p");
is($db->sql("SELECT secret_vars FROM deployment WHERE id = $made"), $copy,
    'a secret default is copied without being decrypted');

# --- without the public key: new values cannot be encrypted, stored ones can be used
rename $api->dir . '/deploy.pub', $api->dir . '/public' or die;
restart();
is(deploy()->{status}, 201, 'without the public key a deployment can use the secret default');
$got = deploy(TOKEN => 'perch-5');
is($got->{status}, 503, 'without the public key a secret value returns 503');
like($got->{json}{detail}, qr/slipway-admin key/, 'the error names slipway-admin key');
is($api->put("/api/projects/$p",
    { envPresets => [ preset('TOKEN', secret => $true, default => 'perch-5') ] })->{status},
    503, 'without the public key a new secret default returns 503');
is($api->put("/api/projects/$p", { description => 'other words' })->{status}, 200,
    'without the public key other members can be changed');
rename $api->dir . '/public', $api->dir . '/deploy.pub' or die;
for my $bad ("1 short\n", '', slurp($api->dir . '/deploy.pub') x 2) {
	my ($good, $before) = (slurp($api->dir . '/deploy.pub'), length $api->log);
	spew($api->dir . '/deploy.pub', $bad, 0644);
	kill 'HUP', $api->pid;
	my $failed = qr/reload failed, the old configuration stays in use: secrets\.deploy_public_file: /;
	ok(poll(10, sub { substr($api->log, $before) =~ $failed }),
	    'a reload logs an invalid public key and keeps the old one');
	spew($api->dir . '/deploy.pub', $good, 0644);
}

# --- rotated keys
restart();
key();
is_deeply(opened(deploy()->{json}{id}), { TOKEN => 'perch-1' },
    'after a rotation the old secrets can be decrypted');
is_deeply(opened(deploy(TOKEN => 'perch-6')->{json}{id}), { TOKEN => 'perch-6' },
    'after a rotation new secrets can be decrypted');
my ($new, $old) = split /\n/, slurp($api->dir . '/deploy.key');
spew($api->dir . '/new', "$new\n", 0400);
my ($rc, undef, $said) = run_cmd({ stdin => $db->sql("SELECT secret_vars FROM deployment WHERE id = $made") },
    program('t/unit/unseal'), $api->dir . '/new', $p);
is($rc >> 8, 1, 'the new key alone does not decrypt old secrets');
like($said, qr/TOKEN: it was sealed with key 1, which the key file lacks/, 'the error names the missing key');

# --- the maximum size
my @many = map { trigger("b$_", map { ("V$_" => sprintf '%090d', $_) } 1 .. 40) } 1 .. 51;
my $worker = join ' ', $api->workers;
$got = $api->put("/api/projects/$p",
    { envPresets => [ map { preset("V$_", secret => $true) } 1 .. 100 ], triggers => \@many });
is(outcome($got), '422 /triggers', 'trigger secrets above the total limit are rejected');
pop @many;
my $began = time;
$got = $api->put("/api/projects/$p", { triggers => \@many,
    envPresets => [ map { preset("V$_", secret => $true, default => 'y' x 2600) } 1 .. 100 ] });
is($got->{status}, 200, 'the maximum of secrets is accepted') or diag($got->{body});
note(sprintf '2,000 values of triggers and 100 defaults: %.2f s, %d kB', time - $began,
    peak_memory($api->workers));
$began = time;
is($api->put("/api/projects/$p", { triggers => $got->{json}{triggers} })->{status}, 200,
    'the maximum of secrets can be kept by null');
note(sprintf 'the same values, kept: %.2f s, %d kB', time - $began, peak_memory($api->workers));
is(scalar @{ hidden() }, 2000, 'all 2,000 trigger secrets are stored');
$made = deploy()->{json}{id};
is(length join('', values %{ opened($made) }), 100 * 2600, 'a deployment gets all secret defaults');
is(deploy(map { ("V$_" => 'z' x 5000) } 1 .. 100)->{status}, 201,
    'a deployment accepts larger secret values');
is(join(' ', $api->workers), $worker, 'no worker died of secrets');
cmp_ok(peak_memory($api->workers), '<', 16_000, 'no worker used more than 16 MB') if !sanitized();
$got = $api->put("/api/projects/$p",
    { envPresets => [], triggers => [ map { trigger("b$_", map { ("W$_" => 'z') } 1 .. 400) } 1 .. 24 ] });
is($got->{status}, 200, 'many plain variables of triggers are accepted') or diag($got->{body});
$got = $api->put("/api/projects/$p", { triggers => [ map { trigger("b$_", A => 'z' x 9000) } 1 .. 100 ] });
is($got->{status}, 200, 'large plain variables of triggers are accepted') or diag($got->{body});
$got = $api->put("/api/projects/$p", { envPresets => [ preset('B', secret => $true) ] });
is($got->{status}, 200, 'large plain variables are accepted beside a secret preset') or diag($got->{body});
is(join(' ', $api->workers), $worker, 'no worker died of plain variables');

# --- no secret in plain text
my $fish = qr/(?:swordfish|marlin|perch|tuna|shark)-\d/; # no base64 has a dash
unlike($api->log, $fish, 'the log contains no secret');
my $dump = $db->sql('SELECT env_presets, triggers, secret_defaults, trigger_secrets FROM project')
    . $db->sql('SELECT env_vars, secret_vars FROM deployment')
    . $db->sql('SELECT answer FROM idempotency');
unlike($dump, $fish, 'the database contains no secret in plain text');

done_testing;
