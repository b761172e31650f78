#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# slipway: configuration, signing in, requests, lists, output and errors.

use strict;
use warnings;
use Cpanel::JSON::XS qw(decode_json);
use Test::More;
use Slipway::API;
use Slipway::Client;
use Slipway::DB;
use Slipway::Test;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $slipway = Slipway::Client->new($api);
my ($status, $out, $err);

sub run { ($status, $out, $err) = $slipway->run(@_); return $status }
sub rejected {
	my ($exit, $re, @args) = @_;
	run(@args);
	my @shown = grep { !ref } @args;
	is($status, $exit, "slipway @shown exits with $exit");
	like($err, $re, "slipway @shown gives the reason");
	is($out, '', "slipway @shown prints nothing on standard output");
	return;
}

# --- the command line
rejected(64, qr/^usage: slipway /m);
rejected(64, qr/unknown command lst\nDid you mean "slipway list"\?$/m, 'lst');
rejected(64, qr/auth requires a subcommand: auth login, auth status, auth logout$/m, 'auth');
rejected(64, qr/unknown option --projet; did you mean --project\?/, 'list', '--projet', 'x');
rejected(64, qr/list: --limit must be a number from 1 to 100\nusage: /, 'list', '-n', '101');
rejected(64, qr/list: --status must be one of pending running/, 'list', '--status=done');
rejected(64, qr/list: --branch requires a value/, 'list', '-b');
rejected(64, qr/list: invalid option -x/, 'list', '-x');
rejected(64, qr/"x" is not the number of a deployment/, 'status', 'x');
is(run('--help'), 0, 'slipway --help succeeds');
like($out, qr/\A[^\n]+\n\n  slipway auth login /, 'the help begins with examples');
like($out, qr/^  list  +list deployments, newest first$/m, 'the help lists the commands');
is(run('list', '-h'), 0, 'slipway list -h succeeds');
like($out, qr/\Aslipway list: [^\n]+\n\n  slipway list\n/, 'the help of a command begins with examples');
like($out, qr/^  -n, --limit NUMBER +print at most/m, 'the help of a command explains its options');
run('help');
my @command = grep { !/^(?:auth|slipway) / } $out =~ /^  ([a-z]+(?: [a-z]+)?)(?= |$)/mg;
cmp_ok(scalar @command, '>', 20, 'the test finds the commands');
for my $name (@command) {
	run('help', split(/ /, $name));
	like($out, qr/\A\Qslipway $name\E: [^\n]+\n\n  slipway \Q$name\E[^\n]*\n      \S/,
	    "the help of $name begins with an example");
}

# --- the configuration
my $config = $slipway->config;
my %alone = (SLIPWAY_URL => undef, SLIPWAY_TOKEN => undef, SLIPWAY_CACERT => undef);
my $token = $api->token('admin');
sub alone {
	my $opt = ref $_[0] ? shift : {};
	return run({ %$opt, env => { %alone, %{ $opt->{env} || {} } } }, @_);
}
is(alone('list'), 78, 'without a service, slipway exits with EX_CONFIG');
like($err, qr/no service is configured: sign in with "slipway auth login/, 'the error says how to sign in');
is(alone({ stdin => "$token\n" }, 'auth', 'login', '--with-token', '--cacert', $api->cacert, $api->url), 0,
    'auth login accepts a token on standard input');
like($out, qr{^signed in to \Q@{[$api->url]}\E as t-admin \(admin\)$}, 'auth login prints the user');
is(sprintf('%04o', (stat $config)[2] & 07777), '0600', 'the configuration is readable by its owner alone');
like(slurp($config), qr{^\[\Q@{[$api->url]}\E\]\ntoken = slw_\w+\ncacert = /},
    'the configuration has the token');
is(alone('auth', 'status'), 0, 'auth status succeeds');
is($out, join("\t", $api->url, 't-admin', 'admin') . "\n", 'auth status prints service, user and role');
alone('auth', 'status', '--json');
is(decode_json($out)->{username}, 't-admin', "auth status --json prints the API's object");

my $viewer = $api->token('viewer');
spew("$config.token", "$viewer\nmore\n", 0600);
is(alone('auth', 'login', '--token-command', "cat $config.token", '--cacert', $api->cacert, $api->url), 0,
    'auth login accepts a command that prints the token');
unlike(slurp($config), qr/slw_/, 'the configuration does not have the token of a command');
alone('auth', 'status');
like($out, qr/\tt-viewer\tviewer$/, 'slipway uses the first line that the command prints');
alone({ env => { SLIPWAY_TOKEN => $token } }, 'auth', 'status');
like($out, qr/\tt-admin\tadmin$/, 'SLIPWAY_TOKEN comes before the configuration');
spew($config, slurp($config) . "# a note\n\n[https://other.example.org]\ntoken = slw_other\n", 0600);
is(alone({ stdin => $token }, 'auth', 'login', '--with-token'), 0, 'auth login replaces a token');
like(slurp($config), qr/# a note\n/, 'auth login keeps comments');
like(slurp($config), qr/^\[https:..other\.example\.org\]\ntoken = slw_other$/m,
    'auth login keeps other services');
alone('-H', $api->url =~ s{.*/}{}r, 'auth', 'status');
like($out, qr/\tt-admin\tadmin$/, '--host chooses a service by its host');
is(alone('auth', 'logout', $api->url), 0, 'auth logout succeeds');
unlike(slurp($config), qr/\Q@{[$api->url]}\E/, 'auth logout removes the service from the configuration');
is(alone('auth', 'logout', $api->url), 66, 'auth logout rejects an unknown service');
for (["token = x\n", qr/config:1: must be below a section/], ["[https://a.example.org]\nx = 1\n",
	qr/config:2: must set token, token_command or cacert/], ["[a.example.org]\n",
	    qr/config:1: "a\.example\.org"/],
	["[http://a.example.org]\ntoken = x\n", qr/config:1: .* no token without TLS: use https/]) {
	spew($config, $_->[0], 0600);
	is(alone('list'), 78, 'an invalid configuration is rejected');
	like($err, $_->[1], 'the error names the line of the configuration');
}
spew($config, "[@{[$api->url]}]\ntoken = $token\n", 0640);
is(alone('list'), 78, 'a configuration that others can read is rejected');
like($err, qr/other users can read it: chmod 0600/, 'the error says what to do');
my $xdg = tempdir() . '/xdg';
is(alone({ stdin => $token, env => { XDG_CONFIG_HOME => $xdg } }, 'auth', 'login', '--with-token', '--cacert',
	$api->cacert, $api->url), 0, 'auth login creates the directories of the configuration');
ok(-s "$xdg/slipway/config", 'the configuration is below XDG_CONFIG_HOME');
unlink $config;

# --- errors
rejected(77, qr/not signed in to .*\nSign in with "slipway auth login/,
    { env => { SLIPWAY_TOKEN => undef } }, 'list');
rejected(77, qr/unknown or expired.*\n  request id: \w+\nSign in/s,
    { env => { SLIPWAY_TOKEN => 'slw_wrong' } }, 'list');
rejected(69, qr/certificate/, { env => { SLIPWAY_CACERT => undef } }, 'list');
rejected(78, qr/sends no token without TLS: use https/, { env => { SLIPWAY_URL => 'http://192.0.2.1' } },
    'list');
rejected(78, qr/is not the URL of a service/, { env => { SLIPWAY_URL => 'https://a/b' } }, 'list');
rejected(66, qr/There is no deployment 999\.\n  request id: /, $_, '999') for qw(status logs cancel);
rejected(66, qr{/nonexist: No such file or directory\n\z}, 'api', 'GET', '/api/projects', '-i', '/nonexist');
rejected(69, qr/^(?!.*auth status)/s, '-H', 'wrong.invalid', 'list');
rejected(65, qr{\n  /name: .*\n  /repository: .*\n  request id: }s, { stdin => '{}' }, 'api', 'POST',
    '/api/projects',
    '-i', '-');
my $busy = free_port();
rejected(69, qr/localhost:$busy cannot be reached/, { env => { SLIPWAY_URL => "http://localhost:$busy" } },
    'list');

# --- api
my %body = (name => 'web shop', repository => 'https://git.example.org/team/shop.git',
    defaultBranch => 'main');
my $json = Cpanel::JSON::XS->new->canonical;
is(run({ stdin => $json->encode(\%body) }, 'api', 'POST', '/api/projects', '-i', '-'), 0, 'api sends a body');
my $project = decode_json($out)->{id};
is(run('api', 'get', "/api/projects/$project"), 0, 'api sends GET');
is(decode_json($out)->{name}, 'web shop', 'api prints the response');
is(run('api', 'PUT', "/api/projects/$project", '-i', spew(tempdir() . '/body', '{"description":"x"}')), 0,
    'api sends a file with PUT');
run('api', '--headers', 'GET', '/api/health');
like($out, qr/\A200\n(?:[a-z-]+: .*\n)+\n\{/, 'api --headers prints status and headers');
rejected(66, qr/request id/, 'api', 'DELETE', '/api/projects/999');
rejected(64, qr/must be one of GET, POST, PUT, DELETE/, 'api', 'PATCH', '/api/projects');
rejected(64, qr/must start with a slash/, 'api', 'GET', 'projects');

# --- lists
my $pipeline = $api->make('/api/pipelines',
    { projectId => $project, name => 'build', description => "one\ntwo",
	steps => [{ name => 'a', script => 'true' }] })->{id};
my $environment = $api->make('/api/environments', { projectId => $project, name => 'production',
	url => 'https://shop.example.org' })->{id};
my $d = $api->make('/api/deployments', { projectId => $project, pipelineId => $pipeline, branch => 'main',
	commitHash => 'a' x 40 });
# as the message of a commit in Git may be
$db->sql("UPDATE deployment SET commit_message = CONCAT('first ', CHAR(27), '[31mline', CHAR(10), 'second')"
    . " WHERE id = $d->{id}");
run('projects');
is($out, "$project\tweb shop\thttps://git.example.org/team/shop.git\tmain\t\n",
    'projects prints lines with tabs');
run('pipelines', '-p', 'Web Shop');
is($out, "$pipeline\tbuild\tone\n", 'pipelines prints those of a project');
run('environments', '--project', $project);
is($out, "$environment\tproduction\t\t\t\thttps://shop.example.org\t\n",
    'environments accepts the id of a project');
rejected(66, qr/unknown project "web shpo"; did you mean "web shop"\?/, 'pipelines', '-p', 'web shpo');
rejected(66, qr/unknown project "nothing": "slipway projects" lists the projects/, 'pipelines', '-p',
    'nothing');
rejected(66, qr/name the project with --project/, { cwd => tempdir() }, 'pipelines');
run('list');
is($out, join("\t", $d->{id}, 'pending', 'web shop', 'production', 'main', 'a' x 40, $d->{createdAt},
	'first \\u{1b}[31mline', '', '') . "\n",
    'list prints a deployment on one line, without control characters');
$db->sql("UPDATE deployment SET tag = 'v1.2' WHERE id = $d->{id}");
run('list');
like($out, qr/\tv1\.2\t$/, 'list prints the tag of a deployment');
run('list', '-t', 'v1.2');
is($out =~ tr/\n//, 1, 'list -t finds the deployments of a tag');
run('list', '--tag=v1');
is($out, '', 'list --tag finds no others');
$db->sql("UPDATE deployment SET tag = NULL WHERE id = $d->{id}");
for ([qw(-p), 'web shop'], [qw(-b main)], [qw(-s pending)], ['-p', $project, '-E', 'Production']) {
	run('list', @$_);
	is($out =~ tr/\n//, 1, "list @$_ finds the deployment");
}
for ([qw(-b other)], [qw(-s failed)]) {
	run('list', @$_);
	is($out, '', "list @$_ finds none");
}
run('list', '--json');
is(decode_json($out)->{data}[0]{id}, $d->{id}, "list --json prints the API's object");
run('projects', '--json');
is(decode_json($out)->{data}[0]{id}, $project, "projects --json prints the API's object");
$api->make('/api/projects',
    { name => "other $_", repository => "https://git.example.org/o/r$_.git" }) for 1 .. 100;
run('projects');
is($out =~ tr/\n//, 101, 'projects prints all pages');
run('projects', '--json');
is(scalar(map { @{ decode_json($_)->{data} } } split /\n/, $out), 101, 'projects --json prints all pages');
run('runners');
is($out, '', 'runners prints nothing without a runner');
$db->sql("INSERT INTO runner (name, labels, version, slots, started_at, seen_at)"
    . " VALUES ('host-1', '[\"rack7\",\"eu\"]', '0.2', 3, NOW(3), NOW(3))");
run('runners');
like($out, qr/^host-1\tyes\t0\t3\t0\.2\t\S+\track7,eu\t\n\z/,
    'runners prints a runner with its labels');

# --- a project as a file
is(run('export', '-p', 'web shop'), 0, 'export succeeds');
my $file = spew(tempdir() . '/shop.json', $out);
my $document = decode_json($out);
is($document->{name}, 'web shop', 'export prints the document of the project');
like($out, qr/\A\{\n  "\w+": .*\n\}\n\z/s, 'the document is indented');
is_deeply($document, $api->get("/api/projects/$project/export")->{json},
    'export prints the document that the service returns');
is(run('apply', $file), 0, 'apply of the same document succeeds');
is("$out$err", "slipway: nothing to change\n", 'apply of the same document changes nothing');
$document->{description} = 'changed';
push @{ $document->{environments} }, { name => 'staging' };
spew($file, $json->encode($document));
rejected(66, qr/unknown project/, 'export', '-p', 'nothing');
rejected(65, qr{/broken.json: }, 'apply', spew(tempdir() . '/broken.json', '{'));
spew($file, $json->encode($document));
is(run('apply', '--dry-run', $file), 0, 'apply --dry-run succeeds');
like($out, qr/^changed\tproject\tweb shop\tdescription$/m, 'apply --dry-run shows what changes');
like($out, qr/^created\tenvironment\tstaging\t/m, 'apply --dry-run shows what is created');
is(run('apply', $file), 64, 'without a terminal, apply requires --yes');
like($err, qr/there is no terminal to ask: repeat with --yes/, 'the error says so');
is($api->get("/api/projects/$project")->{json}{description}, 'x', 'nothing was changed');
my $asks = $slipway->terminal('apply', $file);
ok($asks->saw(qr/Apply these changes\? \[y\/N\] /), 'on a terminal, apply asks');
$asks->type("n\n");
is($asks->end, 0, 'apply accepts no');
is($api->get("/api/projects/$project")->{json}{description}, 'x', 'no changes nothing');
is(run({ stdin => slurp($file) }, 'apply', '--yes', '-'), 0, 'apply --yes asks nothing');
is($api->get("/api/projects/$project")->{json}{description}, 'changed', 'apply changes the project');
rejected(65, qr{\n  /name: }, { stdin => '{}' }, 'apply', '--dry-run', '-');
rejected(65, qr{\n  /: must be an object\n}, { stdin => '[]' }, 'apply', '--dry-run', '-');
my $copy = $json->encode({ %$document, name => 'copy' });
my $taken = 'is the directory of project "web shop"; choose another';
rejected(65, qr{\Aslipway: The request conflicts with what exists\.\n  /projectDir: \Q$taken\E\n  request id},
    { stdin => $copy }, 'apply', '--dry-run', '-');

# --- status
is(run('status', $d->{id}), 0, 'the exit status of a pending deployment is 0');
like($out, qr{^status\tpending\n.*^project\tweb shop\nenvironment\tproduction\n}ms,
    'status prints the deployment');
like($out, qr{^address\t\Q@{[$api->url]}\E/slipway/deployments/$d->{id}$}m, 'status prints the address');
like($out, qr{^a\tpending\t\t\t$}m, 'status prints the steps');
my %exit = (success => 0, failed => 1, canceled => 2, interrupted => 3);
for my $as (sort keys %exit) {
	$db->sql("UPDATE deployment SET status = '$as', finished_at = NOW(3) WHERE id = $d->{id}");
	is(run('status', $d->{id}), $exit{$as},
	    "the exit status of a deployment that ended as $as is $exit{$as}");
}
rejected(66, qr/not a checkout/, { cwd => tempdir() }, 'status');
my $checkout = make_repo(tempdir() . '/checkout');
sub remote { return run_cmd({ cwd => $checkout }, 'git', @_) }
rejected(66, qr/this checkout has no remote repository/, { cwd => $checkout }, 'status');
remote('remote', 'add', 'origin', 'git@git.example.org:team/shop');
is(run({ cwd => $checkout }, 'status', '--json'), 0, 'status finds the project of the checkout');
is(decode_json($out)->{id}, $d->{id}, 'status shows the latest deployment of the project');
remote('remote', 'set-url', 'origin', 'https://git.example.org/team/other');
rejected(66, qr{no project has the repository https://git\.example\.org/team/other: name},
    { cwd => $checkout }, 'status');
remote('remote', 'set-url', 'origin', 'https://ann:s3cret@git.example.org/team/other');
rejected(66, qr{no project has the repository https://\*\*\*\@git\.example\.org/team/other: name},
    { cwd => $checkout }, 'status');
rejected(78, qr{"https://\*\*\*\@slipway\.example\.org" is not the URL of a service}, '-H',
    'https://ann:s3cret@slipway.example.org', 'status');
$api->make('/api/projects', { name => 'twin', repository => 'https://git.example.org/team/shop' });
remote('remote', 'set-url', 'origin', 'ssh://git@git.example.org/team/shop.git/');
rejected(65, qr/2 projects have the repository .*: name one with --project/, { cwd => $checkout }, 'status');

# --- terminals
is(system('python3', '-c', 'import pty'), 0, 'python3 has the module pty');
my @terminal = ('python3', '-c',
    'import pty,sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)', program('slipway'));
my $seen = (run_cmd({ env => $slipway->env(TERM => 'xterm') }, @terminal, 'list'))[1];
like($seen, qr/^ ?ID STATUS +PROJECT +ENVIRONMENT +BRANCH +COMMIT +CREATED +MESSAGE +TAG/m,
    'on a terminal, list prints a table with headings');
like($seen, qr/\e\[32msuccess/, 'a terminal shows the status in color');
like($seen, qr/ aaaaaaaaaa +(?:now|\d+ [smh] ago) /, 'a table has short hashes and relative times');
for ({ TERM => 'xterm', NO_COLOR => '1' }, { TERM => 'dumb' }) {
	$seen = (run_cmd({ env => $slipway->env(%$_) }, @terminal, 'list'))[1];
	unlike($seen, qr/\e/, "no color with @{[%$_]}");
}

($status) = run_cmd({ env => $slipway->env }, 'sh', '-c', 'exec "$@" >/dev/full', 'sh', program('slipway'),
    'list');
is($status >> 8, 74, 'a full disk is an error');

# --- a service that lacks a setting, and one that is away
$api->put("/api/projects/$project",
    { envPresets => [{ key => 'KEY', label => 'Key', type => 'input', secret => \1 }] });
for ([qw(api GET /api/auth/url)],
    ['deploy', '-p', 'web shop', '-b', 'main', '-E', 'staging', '--secret', "KEY=$file"]) {
	is(run(@$_), 75, "slipway $_->[0] fails because of a setting");
	like($err, qr/GITSERVER_URL|slipway-admin key/, 'the error says what is missing');
	unlike($err, qr/try again/i, 'the error does not say that waiting helps');
}
sub unavailable { return scalar(() = $api->log =~ m{POST /api/deployments 503}g) }
poll(15, \&unavailable); # a request is logged after its response
is(unavailable(), 1, 'such a request is not repeated');
$db->stop;
rejected(75, qr/^Try again later\.$/m, 'list');

done_testing();
