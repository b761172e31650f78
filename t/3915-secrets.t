#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Secrets that a project keeps: defaults of its presets and variables of its
# triggers.  They come in, are used, and are never seen again.

use strict;
use warnings;
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
	my $got = $api->post('/api/projects', { name => "p$n", repository => 'https://git.example.org/o/p.git', %more });
	diag($got->{body}) if $got->{status} != 201;
	return $got->{json}{id};
}
sub pipeline {
	my ($project) = @_;
	return $api->post('/api/pipelines', { projectId => $project, name => 'l',
		steps => [ { name => 's', script => 'true' } ] })->{json}{id};
}
sub preset { my ($key, %more) = @_; return { key => $key, label => $key, type => 'input', %more } }
sub stored { my ($id, $column) = @_; return $db->sql("SELECT COALESCE(LENGTH($column), 0) FROM project WHERE id = $id") }

# What the database has for the dispatcher, opened as that does.
sub unsealed {
	my ($project, $text) = @_;
	return {} if $text eq '';
	my ($status, $out, $err) = run_cmd({ stdin => $text }, program('t/unit/unseal'), $api->dir . '/deploy.key', $project);
	is($status, 0, 'what is sealed opens') or diag($err);
	return JSON::PP->new->utf8->decode($out);
}
sub opened {
	my ($id) = @_;
	return unsealed(split /\t/, $db->sql("SELECT project_id, COALESCE(secret_vars, '') FROM deployment WHERE id = $id"), -1);
}

# --- without a key
my $got = $api->post('/api/projects', { name => 'none', repository => 'https://git.example.org/o/p.git',
	envPresets => [ preset('TOKEN', secret => $true, default => 'swordfish-1') ] });
is($got->{status}, 503, 'a secret default without a key: 503');
like($got->{json}{detail}, qr/slipway-admin key/, 'it says what to do');
is($db->sql("SELECT COUNT(*) FROM project WHERE name = 'none'"), 0, 'and nothing is made');
my $plain = project(envPresets => [ preset('TOKEN', secret => $true) ]);
ok($plain, 'a secret preset without a default needs none');
is($api->put("/api/projects/$plain", { envPresets => [ preset('TOKEN', secret => $true, default => '') ] })->{status}, 200, 'nor does an empty one');
key();

# --- defaults
my $p = project(envPresets => [ preset('TOKEN', secret => $true, default => 'swordfish-1', required => $true),
	preset('OPEN', default => 'seen') ]);
my $l = pipeline($p);
my $read = $api->get("/api/projects/$p");
is($read->{json}{envPresets}[0]{default}, undef, 'a secret default reads as null');
is($read->{json}{envPresets}[1]{default}, 'seen', 'another as it is');
cmp_ok(stored($p, 'secret_defaults'), '>', 40, 'it is stored');
is($db->sql("SELECT COUNT(*) FROM project WHERE id = $p AND (secret_defaults LIKE '%sword%' OR env_presets LIKE '%sword%')"), 0, 'sealed');
sub deploy { my (%vars) = @_; return $api->post('/api/deployments', { projectId => $p, envVars => \%vars }) }
$got = deploy();
is($got->{status}, 201, 'a deployment that leaves it out') or diag($got->{body});
is_deeply($got->{json}{envVars}, { TOKEN => undef, OPEN => 'seen' }, 'has it as null');
is_deeply(opened($got->{json}{id}), { TOKEN => 'swordfish-1' }, 'and as what it is, for the runner');
my $retry = $api->post("/api/deployments/$got->{json}{id}/retry")->{json}{id};
is_deeply(opened($retry), { TOKEN => 'swordfish-1' }, 'a retry has it too');
is_deeply(opened(deploy(TOKEN => 'given-one')->{json}{id}), { TOKEN => 'given-one' }, 'one that gives it has its own');
$api->put("/api/projects/$p", { description => 'words' });
is_deeply(opened(deploy()->{json}{id}), { TOKEN => 'swordfish-1' }, 'a change of something else keeps it');
$read = $api->get("/api/projects/$p");
$got = $api->put("/api/projects/$p", { envPresets => $read->{json}{envPresets} });
is($got->{status}, 200, 'what was read can be sent back');
is_deeply(opened(deploy()->{json}{id}), { TOKEN => 'swordfish-1' }, 'null keeps it');
$api->put("/api/projects/$p", { envPresets => [ preset('OTHER', default => 'x'), preset('TOKEN', secret => $true) ] });
is_deeply(opened(deploy()->{json}{id}), { TOKEN => 'swordfish-1' }, 'so does leaving it out, wherever the preset stands');
$api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true, default => 'swordfish-2') ] });
is_deeply(opened(deploy()->{json}{id}), { TOKEN => 'swordfish-2' }, 'another one takes its place');
is_deeply(opened($retry), { TOKEN => 'swordfish-1' }, 'which changes no deployment that there is');
$got = $api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true, required => $true, pattern => '[0-9]+') ] });
is(outcome($got), '422 /envPresets/0/default', 'a new pattern needs the value again');
unlike($got->{body}, qr/sword/, 'which is not told');
my ($no, @guesses) = $got->{body} =~ s/[0-9a-f]{32}//r;
for ('s.*', 'swordfish-2', '.*', '[0-9]+', 'x') {
	my $guess = $api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true, required => $true, pattern => $_) ] });
	push @guesses, $guess->{body} =~ s/[0-9a-f]{32}//r;
}
is_deeply(\@guesses, [ ($no) x 5 ], 'nor can it be found by patterns: whatever they are, the answer is the same');
$got = $api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true, pattern => 's.*', default => 'swordfish-2') ] });
is($got->{status}, 200, 'with its value a pattern may be new');
$got = $api->put("/api/projects/$p", { envPresets => $got->{json}{envPresets} });
is($got->{status}, 200, 'the same pattern keeps it');
$got = $api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true) ] });
is($got->{status}, 200, 'so does none');
$got = $api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true, pattern => '[0-9]+', default => 'swordfish-3') ] });
is(outcome($got), '422 /envPresets/0/default', 'so must one that is sent');
unlike($got->{body}, qr/sword/, 'nor is this');
is_deeply(opened(deploy()->{json}{id}), { TOKEN => 'swordfish-2' }, 'what was refused changes nothing');
$api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true, required => $true, default => '') ] });
is(stored($p, 'secret_defaults'), 0, 'an empty one ends it');
is(outcome(deploy()), '422 /envVars/TOKEN', 'then the variable has to be given');
$api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true, default => 'swordfish-4') ] });
$got = $api->put("/api/projects/$p", { envPresets => [ preset('TOKEN') ] });
is($got->{json}{envPresets}[0]{default}, undef, 'a preset that is secret no more does not tell its default');
is(stored($p, 'secret_defaults'), 0, 'which is gone');
$api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true) ] });
is_deeply(deploy()->{json}{envVars}, {}, 'and does not come back');
$api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true, default => 'swordfish-5') ] });
$api->put("/api/projects/$p", { envPresets => [ preset('TOKEN2', secret => $true) ] });
is_deeply(deploy()->{json}{envVars}, {}, 'another key is another preset');
is($api->put("/api/projects/$p", { envPresets => [ preset('A', secret => $true, default => 'x' x 4097) ] })->{status}, 422, 'one that is too long');
is($api->put("/api/projects/$p", { envPresets => [ preset('A', secret => $true, default => 7) ] })->{status}, 422, 'one that is no text');
is($api->put("/api/projects/$p", { envPresets => [ preset('A', secret => $true, type => 'select', default => 'y',
	options => [ { label => 'y', value => 'y' } ]) ] })->{status}, 422, 'a choice is no secret');
$got = $api->put("/api/projects/$p", { envPresets => [ map { preset("S$_", secret => $true, default => "\x{1F511}" x 4096) } 1 .. 40 ] });
is(outcome($got), '422 /envPresets', 'more than there is room for');

# --- variables of triggers
my $secret = preset('TOKEN', secret => $true);
sub trigger { my ($branch, %vars) = @_; return { branch => $branch, pipelineId => $l, envVars => \%vars } }
sub triggers { my (@t) = @_; return $api->put("/api/projects/$p", { envPresets => [ $secret ], triggers => \@t }) }
sub hidden {
	return [ sort values %{ unsealed($p, $db->sql("SELECT COALESCE(trigger_secrets, '') FROM project WHERE id = $p")) } ];
}
$got = triggers(trigger('main', TOKEN => 'marlin-1', STAGE => 'live'));
is($got->{status}, 200, 'a trigger with a secret') or diag($got->{body});
is_deeply($got->{json}{triggers}[0]{envVars}, { TOKEN => undef, STAGE => 'live' }, 'reads as null');
is_deeply(hidden(), ['marlin-1'], 'and is sealed');
is($db->sql("SELECT COUNT(*) FROM project WHERE id = $p AND triggers LIKE '%marlin%'"), 0, 'not in the open');
$got = $api->put("/api/projects/$p", { triggers => $got->{json}{triggers} });
is($got->{status}, 200, 'what was read can be sent back');
is_deeply(hidden(), ['marlin-1'], 'null keeps it');
$api->put("/api/projects/$p", { name => 'renamed' });
is_deeply(hidden(), ['marlin-1'], 'so does a change of something else');
triggers(trigger('x/*'), trigger('main', TOKEN => undef), trigger('main', TOKEN => 'marlin-2'));
is_deeply(hidden(), [qw(marlin-1 marlin-2)], 'two triggers of one branch and pipeline count in their order');
triggers(trigger('main', TOKEN => undef), trigger('main', TOKEN => undef));
is_deeply(hidden(), [qw(marlin-1 marlin-2)], 'and keep theirs');
triggers(trigger('main', TOKEN => undef));
is_deeply(hidden(), ['marlin-1'], 'one that is left out loses its own');
is(outcome(triggers(trigger('main', TOKEN => undef), trigger('main', TOKEN => undef))), '422 /triggers/1/envVars/TOKEN', 'null that keeps nothing');
is(outcome(triggers(trigger('other', TOKEN => undef))), '422 /triggers/0/envVars/TOKEN', 'another branch is another trigger');
is(outcome(triggers(trigger('main', PLAIN => undef))), '422 /triggers/0/envVars/PLAIN', 'null for what is no secret');
is_deeply(hidden(), ['marlin-1'], 'what was refused changes nothing');
$got = $api->put("/api/projects/$p", { envPresets => [ preset('TOKEN') ] });
is(outcome($got), '422 /triggers/0/envVars/TOKEN', 'a preset that is secret no more needs the value anew');
$got = triggers(trigger('main', TOKEN => 'marlin-3', PLAIN => 'open-one'));
$got = $api->put("/api/projects/$p", { envPresets => [ $secret, preset('PLAIN', secret => $true) ] });
is($got->{status}, 200, 'a preset becomes secret') or diag($got->{body});
is_deeply($got->{json}{triggers}[0]{envVars}, { TOKEN => undef, PLAIN => undef }, 'what stood in the open does so no more');
is_deeply(hidden(), [qw(marlin-3 open-one)], 'it is sealed');
$got = $api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true, pattern => 'm.*') ], triggers => [ trigger('main', TOKEN => 'shark-1') ] });
is(outcome($got), '422 /triggers/0/envVars/TOKEN', 'a secret is held against its preset');
unlike($got->{body}, qr/shark|marlin/, 'and not told');
for my $guess ('m.*', 'x.*', '.*') {
	$got = $api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true, pattern => $guess), preset('PLAIN', secret => $true) ] });
	is(outcome($got), '422 /triggers/0/envVars/TOKEN', "nor found by the pattern $guess");
}
is_deeply(hidden(), [qw(marlin-3 open-one)], 'it is kept');
$api->put("/api/projects/$p", { envPresets => [ preset('NEED', secret => $true, required => $true, default => 'tuna-1') ], triggers => [ trigger('main') ] });
is($api->get("/api/projects/$p")->{json}{triggers}[0]{branch}, 'main', 'a required one that has a stored default need not be given');
$api->put("/api/projects/$p", { triggers => [] });
is(stored($p, 'trigger_secrets'), 0, 'no triggers, no secrets');

# --- branches of triggers
is(triggers(trigger($_))->{status}, 200, "a branch: $_") for 'main', 'release/*', '**', '*', 'v?.x', "f\x{fc}r/**/x", 'a-b_c.d';
is(outcome(triggers(trigger($_))), '422 /triggers/0/branch', "no branch: $_")
    for '-x', '/x', 'x/', 'a..b', 'a b', 'a[bc]', '{a,b}~', 'x.lock', 'a\\b', '!:x', 'a//b';
like(triggers(trigger('a[bc]'))->{json}{errors}[0]{detail}, qr/ ~\^:\[\\; the wildcards of a pattern are \*, \*\* and \?$/, 'what a pattern may have is told');
is(outcome(triggers({ branch => 'main', pipelineId => pipeline($plain) })), '422 /triggers/0/pipelineId', "another project's pipeline");

# --- the API has no private half, and needs none
$api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true, default => 'perch-1') ],
	triggers => [ trigger('main', TOKEN => 'perch-2') ] });
rename $api->dir . '/deploy.key', $api->dir . '/private' or die;
restart();
my $made = deploy()->{json}{id};
$got = $api->put("/api/projects/$p", { triggers => [ trigger('main', TOKEN => undef), trigger('x', TOKEN => 'perch-3') ], description => 'kept' });
is($got->{status}, 200, 'without it what is stored is kept, and more is sealed') or diag($got->{body});
my $given = deploy(TOKEN => 'perch-4')->{json}{id};
rename $api->dir . '/private', $api->dir . '/deploy.key' or die;
is_deeply(opened($made), { TOKEN => 'perch-1' }, 'a default is copied');
is_deeply(opened($given), { TOKEN => 'perch-4' }, 'a value that is given is sealed');
is_deeply(hidden(), [qw(perch-2 perch-3)], 'so are those of triggers');
my $copy = $db->sql("SELECT secret_defaults FROM project WHERE id = $p");
is($db->sql("SELECT secret_vars FROM deployment WHERE id = $made"), $copy, 'to the letter');

# --- without the public half: what is new cannot be sealed, what is stored is used
rename $api->dir . '/deploy.pub', $api->dir . '/public' or die;
restart();
is(deploy()->{status}, 201, 'without a key to seal with a default can be used');
$got = deploy(TOKEN => 'perch-5');
is($got->{status}, 503, 'no other value');
like($got->{json}{detail}, qr/slipway-admin key/, 'it says what to do');
is($api->put("/api/projects/$p", { envPresets => [ preset('TOKEN', secret => $true, default => 'perch-5') ] })->{status}, 503, 'nor a new default');
is($api->put("/api/projects/$p", { description => 'other words' })->{status}, 200, 'the rest can be changed');
rename $api->dir . '/public', $api->dir . '/deploy.pub' or die;
for my $bad ("1 short\n", '', slurp($api->dir . '/deploy.pub') x 2) {
	my ($good, $before) = (slurp($api->dir . '/deploy.pub'), length $api->log);
	spew($api->dir . '/deploy.pub', $bad, 0644);
	kill 'HUP', $api->pid;
	ok(poll(10, sub { substr($api->log, $before) =~ /reload failed, the old configuration stays in use: secrets\.deploy_public_file: / }), 'a public half that is none is told at a reload');
	spew($api->dir . '/deploy.pub', $good, 0644);
}

# --- keys that are turned
restart();
key();
is_deeply(opened(deploy()->{json}{id}), { TOKEN => 'perch-1' }, 'a new key, and the old one opens still');
is_deeply(opened(deploy(TOKEN => 'perch-6')->{json}{id}), { TOKEN => 'perch-6' }, 'so does the new one');
my ($new, $old) = split /\n/, slurp($api->dir . '/deploy.key');
spew($api->dir . '/new', "$new\n", 0400);
my ($rc, undef, $said) = run_cmd({ stdin => $db->sql("SELECT secret_vars FROM deployment WHERE id = $made") }, program('t/unit/unseal'), $api->dir . '/new', $p);
is($rc >> 8, 1, 'which alone does not open what was sealed before');
like($said, qr/TOKEN: it was sealed with key 1, which the key file lacks/, 'and says which is missing');

# --- the largest there can be
my @many = map { trigger("b$_", map { ("V$_" => sprintf '%090d', $_) } 1 .. 40) } 1 .. 51;
my $worker = join ' ', $api->workers;
$got = $api->put("/api/projects/$p", { envPresets => [ map { preset("V$_", secret => $true) } 1 .. 100 ], triggers => \@many });
is(outcome($got), '422 /triggers', 'more secrets than there is room for');
pop @many;
my $began = time;
$got = $api->put("/api/projects/$p", { triggers => \@many, envPresets => [ map { preset("V$_", secret => $true, default => 'y' x 2600) } 1 .. 100 ] });
is($got->{status}, 200, 'as many as can be') or diag($got->{body});
note(sprintf 'two thousand values of triggers and a hundred defaults: %.2f s, %d kB', time - $began, peak_memory($api->workers));
$began = time;
is($api->put("/api/projects/$p", { triggers => $got->{json}{triggers} })->{status}, 200, 'can be kept');
note(sprintf 'the same, kept: %.2f s, %d kB', time - $began, peak_memory($api->workers));
is(scalar @{ hidden() }, 2000, 'all are there');
$made = deploy()->{json}{id};
is(length join('', values %{ opened($made) }), 100 * 2600, 'and all defaults, in a deployment');
is(deploy(map { ("V$_" => 'z' x 5000) } 1 .. 100)->{status}, 201, 'or larger values');
is(join(' ', $api->workers), $worker, 'no worker was lost over it');
cmp_ok(peak_memory($api->workers), '<', 16_000, 'nor held more than 16 MB') if !sanitized();
$got = $api->put("/api/projects/$p", { envPresets => [], triggers => [ map { trigger("b$_", map { ("W$_" => 'z') } 1 .. 400) } 1 .. 24 ] });
is($got->{status}, 200, 'and many in the open') or diag($got->{body});
$got = $api->put("/api/projects/$p", { triggers => [ map { trigger("b$_", A => 'z' x 9000) } 1 .. 100 ] });
is($got->{status}, 200, 'large ones in the open') or diag($got->{body});
$got = $api->put("/api/projects/$p", { envPresets => [ preset('B', secret => $true) ] });
is($got->{status}, 200, 'beside a secret preset') or diag($got->{body});
is(join(' ', $api->workers), $worker, 'no worker was lost over it');

# --- nowhere
my $fish = qr/(?:swordfish|marlin|perch|tuna|shark)-\d/; # no base64 has a dash
unlike($api->log, $fish, 'no log has a secret');
my $dump = $db->sql('SELECT env_presets, triggers, secret_defaults, trigger_secrets FROM project') . $db->sql('SELECT env_vars, secret_vars FROM deployment')
    . $db->sql('SELECT answer FROM idempotency');
unlike($dump, $fish, 'nor has the database, in the open');

done_testing;
