#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Names: which characters they may have, which count as equal, and how they
# come to a terminal.

use strict;
use warnings;
use Encode ();
use JSON::PP ();
use Slipway::API;
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $repository = 'https://git.example.org/a/one';
my $n = 0;

sub project {
	my (%more) = @_;
	return $api->post('/api/projects', { name => 'p' . ++$n, repository => $repository, projectDir => "d$n", %more });
}
sub pointers { my ($got) = @_; return join ' ', $got->{status}, sort map { $_->{pointer} } @{ $got->{json}{errors} || [] } }

my $project = project()->{json}{id};
my $pipeline = $api->post('/api/pipelines', { projectId => $project, name => 'pl', steps => [{ name => 's', script => 'true' }] })->{json};
my $user = $api->post('/api/user', { username => 'eve', role => 'viewer' })->{json}{id};

# --- every one-line text rejects what steers a terminal
my %line = (
	'project name' => sub { $api->put("/api/projects/$project", { name => $_[0] }) },
	'default branch' => sub { $api->put("/api/projects/$project", { defaultBranch => $_[0] }) },
	'preset label' => sub { $api->put("/api/projects/$project", { envPresets => [{ key => 'K', label => $_[0], type => 'input' }] }) },
	'option label' => sub { $api->put("/api/projects/$project", { envPresets => [{ key => 'K', label => 'l', type => 'select',
	    options => [{ label => $_[0], value => 'v' }] }] }) },
	'trigger branch' => sub { $api->put("/api/projects/$project", { triggers => [{ branch => $_[0], pipelineId => $pipeline->{id} }] }) },
	'pipeline name' => sub { $api->put("/api/pipelines/$pipeline->{id}", { name => $_[0] }) },
	'step name' => sub { $api->put("/api/steps/$pipeline->{steps}[0]{id}", { name => $_[0] }) },
	'name of a user' => sub { $api->put("/api/user/$user", { name => $_[0] }) },
	'username' => sub { $api->put("/api/user/$user", { username => $_[0] }) },
	'name of a token' => sub { $api->post('/api/auth/tokens', { name => $_[0] }) },
	'branch of a deployment' => sub { $api->post('/api/deployments', { projectId => $project, branch => $_[0] }) },
	'name from a template' => sub { $api->post('/api/pipelines/from-template', { templateId => 'node', projectId => $project, name => $_[0] }) },
);
my %control = ("\x{9b}" => 'CSI (C1)', "\x{85}" => 'NEL (C1)', "\x{80}" => 'the first of C1', "\x{9f}" => 'the last of C1', "\x{1b}" => 'escape',
	"\x{7f}" => 'DEL', "\x{202e}" => 'right-to-left override', "\x{202a}" => 'left-to-right embedding', "\x{2066}" => 'an isolate',
	"\x{2069}" => 'its end', "\x{200f}" => 'a right-to-left mark', "\x{61c}" => 'an Arabic letter mark', "\x{2028}" => 'a line separator',
	"\x{2029}" => 'a paragraph separator');
for my $what (sort keys %line) {
	for my $char (sort keys %control) {
		my $got = $line{$what}->("a${char}b");
		is($got->{status}, 422, "a $what has no $control{$char}") or diag $got->{body};
	}
}
for my $what (grep { !/user|branch/ } sort keys %line) {
	for my $blank ("\x{200b}", "\x{2060}\x{200d}", "\x{feff}", "\x{3164}", "\x{ad}", "\x{2800}", "\x{e0061}", "\x{115f}", "\x{fe0f}", " \x{3000}\x{a0}") {
		is($line{$what}->($blank)->{status}, 422, sprintf 'a %s needs something to see beyond U+%04X', $what, ord $blank);
	}
}
is($line{'name of a user'}->("\x{200b}")->{status}, 422, 'a name of a user, too');
# What can be seen is taken.
for my $name ("Caf\x{e9}", "\x{e4}\x{f6}\x{fc}", "\x{4f60}\x{597d}", "\x{5e9}\x{5dc}\x{5d5}\x{5dd}", "\x{1f469}\x{200d}\x{1f4bb}", "\x{645}\x{6cc}\x{200c}\x{62e}", "a\x{a0}b") {
	my $got = project(name => $name);
	is($got->{status}, 201, "a name like \"" . Encode::encode('UTF-8', $name) . '" is taken') or diag $got->{body};
	is($got->{json}{name}, $name, 'as it is');
}

# --- text of several lines
for my $case (['project', sub { project(description => $_[0]) }, 201],
	['pipeline', sub { $api->put("/api/pipelines/$pipeline->{id}", { description => $_[0] }) }, 200],
	['preset', sub { project(envPresets => [{ key => 'K', label => 'l', type => 'input', description => $_[0] }]) }, 201]) {
	my ($what, $send, $good) = @$case;
	is($send->("one\n\ttwo\r\nthree")->{status}, $good, "a description of a $what may have lines");
	for my $char (sort grep { !/[\x{2028}\x{2029}]/ } keys %control) {
		is($send->("a${char}b")->{status}, 422, "but no $control{$char}");
	}
}
# Values and scripts are data.
is($api->put("/api/steps/$pipeline->{steps}[0]{id}", { script => "printf '\x{9b}\x{202e}'" })->{status}, 200, 'a script may have any');

# --- the document says the same
my $schema = JSON::PP->new->utf8->decode($api->get('/api/openapi.json')->{body})->{components}{schemas};
my $pattern = $schema->{ProjectInput}{properties}{name}{pattern} || $schema->{ProjectCreate}{properties}{name}{pattern};
ok($pattern, 'the document has a pattern of names');
$pattern =~ s/\\u([0-9a-f]{4})/\\x{$1}/g;
unlike("a${_}b", qr/$pattern/, "which leaves out $control{$_}") for sort keys %control;
unlike($_, qr/$pattern/, sprintf 'and U+%04X alone', ord) for "\x{200b}", "\x{3164}", "\x{e0061}", "\x{2800}", "\x{3000}";
like($_, qr/$pattern/, 'and takes ' . Encode::encode('UTF-8', $_)) for "Caf\x{e9}", "a b", "\x{1f469}\x{200d}\x{1f4bb}", "a\x{200b}";

# --- which names are one
for my $case (["Stra\x{df}e", 'STRASSE', 'sharp s'], ["Cr\x{e8}me", 'creme', 'case and accents'], ["\x{ff21}\x{ff22}", 'ab', 'width'],
	["Zero\x{200b}Width", 'ZeroWidth', 'what cannot be seen']) {
	my ($one, $other, $name) = @$case;
	is(project(name => $one)->{status}, 201, "a project, $name");
	is(pointers(project(name => $other)), '409 /name', 'another with an equal name is a conflict');
	my $enc = sub { my $s = Encode::encode('UTF-8', $_[0]); $s =~ s/([^A-Za-z0-9])/sprintf '%%%02X', ord $1/ge; $s };
	my $found = $api->get('/api/projects?name=' . $enc->($other))->{json};
	is_deeply([map { $_->{name} } @{ $found->{data} }], [$one], 'and a search finds what it is equal to');
	is($found->{pagination}{total}, 1, 'and counts it');
}
is(project(name => 'x y')->{status}, 201, 'a name with a blank');
is(project(name => 'x  y')->{status}, 201, 'is not that with two');

# --- what is stored from before a rule is readable, and safe on a terminal
$db->sql("UPDATE user SET name = 'a\x{c2}\x{9b}31mred', email = 'x\x{e2}\x{80}\x{ae}y\@example.org' WHERE id = $user");
$db->sql("UPDATE api_token SET name = 'tok\x{c2}\x{9b}en' WHERE user_id = $user")
    if $db->sql("INSERT INTO api_token (user_id, name, role, hash) VALUES ($user, 'x', 'viewer', REPEAT('a', 64)); SELECT 1");
my (undef, $out) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'user', 'list');
like($out, qr/^eve\tviewer\tactive\ta\\u\{9b\}31mred\tx\\u\{202e\}y\@example\.org$/m, 'slipway-admin escapes names and addresses');
(undef, $out) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'token', 'list', 'eve');
like($out, qr/\ttok\\u\{9b\}en\t/, 'and names of tokens');
my (undef, undef, $err) = run_cmd(program('slipway-admin'), '-c', $api->conf_file, 'token', 'list', "x\x{c2}\x{9b}y");
like($err, qr/x\\u\{9b\}y/, 'and what it complains of');
$db->sql("UPDATE project SET env_presets = '[{\"key\":\"K\",\"label\":\"a\x{c2}\x{9b}b\",\"type\":\"input\",\"options\":[],\"required\":false,"
    . "\"default\":null,\"description\":null,\"pattern\":null,\"secret\":false}]' WHERE id = $project");
is($api->get("/api/projects/$project")->{status}, 200, 'a project with an older label is read');
is($api->put("/api/projects/$project", { description => 'new' })->{status}, 200, 'and changed');
is($api->post('/api/deployments', { projectId => $project, branch => 'main', envVars => { K => 'v' } })->{status}, 201, 'and deployed');
# The log escapes all that is not printable ASCII.
my $log = $api->log;
unlike($log, qr/\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]/, 'the log has none of it');

done_testing;
