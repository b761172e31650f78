#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Names: the characters that they may contain, which names count as equal, and how
# programs print them on a terminal.

use strict;
use warnings;
use Encode ();
use Cpanel::JSON::XS ();
use Slipway::API qw(outcome);
use Slipway::DB;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $api = Slipway::API->start(db => $db);
my $repository = 'https://git.example.org/a/one';
my $n = 0;

sub project {
	my (%more) = @_;
	$n++;
	return $api->post('/api/projects',
	    { name => "p$n", repository => $repository, projectDir => "d$n", %more });
}

my $project = project()->{json}{id};
my $pipeline = $api->make('/api/pipelines', { projectId => $project, name => 'pl',
	steps => [{ name => 's', script => 'true' }] });
my $user = $api->post('/api/user', { username => 'eve', role => 'viewer' })->{json}{id};

# --- no one-line text accepts characters that control a terminal
sub change { my (%members) = @_; return $api->put("/api/projects/$project", \%members) }
sub preset { my (%members) = @_; return { key => 'K', label => 'l', type => 'input', %members } }
my %line = (
	'project name' => sub { change(name => $_[0]) },
	'default branch' => sub { change(defaultBranch => $_[0]) },
	'preset label' => sub { change(envPresets => [preset(label => $_[0])]) },
	'option label' => sub {
		change(envPresets => [preset(type => 'select',
		    options => [{ label => $_[0], value => 'v' }])]);
	},
	'trigger branch' => sub { change(triggers => [{ branch => $_[0], pipelineId => $pipeline->{id} }]) },
	'pipeline name' => sub { $api->put("/api/pipelines/$pipeline->{id}", { name => $_[0] }) },
	'step name' => sub { $api->put("/api/steps/$pipeline->{steps}[0]{id}", { name => $_[0] }) },
	'name of a user' => sub { $api->put("/api/user/$user", { name => $_[0] }) },
	'username' => sub { $api->put("/api/user/$user", { username => $_[0] }) },
	'name of a token' => sub { $api->within_rate('POST', '/api/auth/tokens', { name => $_[0] }) },
	'branch of a deployment' => sub {
		$api->post('/api/deployments', { projectId => $project, branch => $_[0] });
	},
	'name from a template' => sub {
		$api->post('/api/pipelines/from-template',
		    { templateId => 'node', projectId => $project, name => $_[0] });
	},
);
my %control = ("\x{9b}" => 'CSI (C1)', "\x{85}" => 'NEL (C1)', "\x{80}" => 'the first character of C1',
	"\x{9f}" => 'the last character of C1', "\x{1b}" => 'an escape', "\x{7f}" => 'a DEL',
	"\x{202e}" => 'a right-to-left override', "\x{202a}" => 'a left-to-right embedding',
	"\x{2066}" => 'the start of an isolate', "\x{2069}" => 'the end of an isolate',
	"\x{200f}" => 'a right-to-left mark', "\x{61c}" => 'an Arabic letter mark',
	"\x{2028}" => 'a line separator', "\x{2029}" => 'a paragraph separator');
for my $what (sort keys %line) {
	for my $char (sort keys %control) {
		my $got = $line{$what}->("a${char}b");
		is($got->{status}, 422, "a $what with $control{$char} is rejected") or diag $got->{body};
	}
}
my @invisible = ("\x{200b}", "\x{2060}\x{200d}", "\x{feff}", "\x{3164}", "\x{ad}", "\x{2800}", "\x{e0061}",
	"\x{115f}", "\x{fe0f}", " \x{3000}\x{a0}");
for my $what (grep { !/user|branch/ } sort keys %line) {
	for my $blank (@invisible) {
		is($line{$what}->($blank)->{status}, 422,
		    sprintf 'an invisible %s (U+%04X) is rejected', $what, ord $blank);
	}
}
is($line{'name of a user'}->("\x{200b}")->{status}, 422, 'an invisible name of a user is rejected');
# Visible names are accepted.
for my $name ("Caf\x{e9}", "\x{e4}\x{f6}\x{fc}", "\x{4f60}\x{597d}", "\x{5e9}\x{5dc}\x{5d5}\x{5dd}",
	"\x{1f469}\x{200d}\x{1f4bb}", "\x{645}\x{6cc}\x{200c}\x{62e}", "a\x{a0}b") {
	my $got = project(name => $name);
	my $shown = Encode::encode('UTF-8', $name);
	is($got->{status}, 201, "the name \"$shown\" is accepted") or diag $got->{body};
	is($got->{json}{name}, $name, "the name \"$shown\" is returned unchanged");
}

# --- text of several lines
for my $case (['project', sub { project(description => $_[0]) }, 201],
	['pipeline', sub { $api->put("/api/pipelines/$pipeline->{id}", { description => $_[0] }) }, 200],
	['commit', sub { $api->post('/api/deployments', { projectId => $pipeline->{projectId},
		pipelineId => $pipeline->{id}, commitMessage => $_[0] }) }, 201],
	['preset', sub { project(envPresets => [preset(description => $_[0])]) }, 201]) {
	my ($what, $send, $good) = @$case;
	is($send->("one\n\ttwo\r\nthree")->{status}, $good,
	    "a description of a $what may have several lines");
	for my $char (sort grep { !/[\x{2028}\x{2029}]/ } keys %control) {
		is($send->("a${char}b")->{status}, 422,
		    "a description of a $what with $control{$char} is rejected");
	}
}
# Values and scripts are data.
is($api->put("/api/steps/$pipeline->{steps}[0]{id}", { script => "printf '\x{9b}\x{202e}'" })->{status}, 200,
    'a script may contain any character');

# --- the pattern in the OpenAPI document
my $document = Cpanel::JSON::XS->new->utf8->decode($api->get('/api/openapi.json')->{body});
my $schema = $document->{components}{schemas};
my $pattern = $schema->{ProjectInput}{properties}{name}{pattern}
    || $schema->{ProjectCreate}{properties}{name}{pattern};
ok($pattern, 'the OpenAPI document has a pattern for names');
$pattern =~ s/\\u([0-9a-f]{4})/\\x{$1}/g;
unlike("a${_}b", qr/$pattern/, "the pattern for names excludes $control{$_}") for sort keys %control;
unlike($_, qr/$pattern/, sprintf 'the pattern for names excludes U+%04X alone', ord)
    for "\x{200b}", "\x{3164}", "\x{e0061}", "\x{2800}", "\x{3000}";
like($_, qr/$pattern/, 'the pattern for names accepts ' . Encode::encode('UTF-8', $_))
    for "Caf\x{e9}", 'a b', "\x{1f469}\x{200d}\x{1f4bb}", "a\x{200b}";

# --- names that count as equal
for my $case (["Stra\x{df}e", 'STRASSE', 'a sharp s'], ["Cr\x{e8}me", 'creme', 'case and accents'],
	["\x{ff21}\x{ff22}", 'ab', 'width'], ["Zero\x{200b}Width", 'ZeroWidth', 'invisible characters']) {
	my ($one, $other, $name) = @$case;
	is(project(name => $one)->{status}, 201, "a project is created (equal but for $name)");
	is(outcome(project(name => $other)), '409 /name', "a name that is equal but for $name is a conflict");
	my $enc = sub { my $s = Encode::encode('UTF-8', $_[0]);
		$s =~ s/([^A-Za-z0-9])/sprintf '%%%02X', ord $1/ge; $s };
	my $found = $api->get('/api/projects?name=' . $enc->($other))->{json};
	is_deeply([map { $_->{name} } @{ $found->{data} }], [$one],
	    "a search finds the name that is equal but for $name");
	is($found->{pagination}{total}, 1, "a search counts the name that is equal but for $name");
}
is(project(name => 'x y')->{status}, 201, 'a name with a blank is accepted');
is(project(name => 'x  y')->{status}, 201, 'names with one and two blanks are different');

# --- text that was stored before a rule existed can be read, and is escaped on a terminal
$db->sql("UPDATE user SET name = 'a\x{c2}\x{9b}31mred', email = 'x\x{e2}\x{80}\x{ae}y\@example.org'"
    . " WHERE id = $user");
$db->sql('INSERT INTO api_token (user_id, name, role, hash)'
    . " VALUES ($user, 'tok\x{c2}\x{9b}en', 'viewer', REPEAT('a', 64))");
my (undef, $out) = slipway_admin($api->conf_file, 'user', 'list');
like($out, qr/^eve\tviewer\tactive\ta\\u\{9b\}31mred\tx\\u\{202e\}y\@example\.org$/m,
    'slipway-admin escapes names and addresses of users');
(undef, $out) = slipway_admin($api->conf_file, 'token', 'list', 'eve');
like($out, qr/\ttok\\u\{9b\}en\t/, 'slipway-admin escapes names of tokens');
my (undef, undef, $err) = slipway_admin($api->conf_file, 'token', 'list', "x\x{c2}\x{9b}y");
like($err, qr/x\\u\{9b\}y/, 'slipway-admin escapes names in error messages');
$db->sql("UPDATE project SET env_presets = '[{\"key\":\"K\",\"label\":\"a\x{c2}\x{9b}b\",\"type\":\"input\","
    . "\"options\":[],\"required\":false,\"default\":null,\"description\":null,"
    . "\"pattern\":null,\"secret\":false}]' WHERE id = $project");
is($api->get("/api/projects/$project")->{status}, 200, 'a project with an old label is returned');
is($api->put("/api/projects/$project", { description => 'new' })->{status}, 200,
    'a project with an old label can be changed');
is($api->post('/api/deployments',
    { projectId => $project, branch => 'main',
    envVars => { K => 'v' } })->{status}, 201, 'a project with an old label can be deployed');
# The log escapes every character but printable ASCII.
my $log = $api->log;
unlike($log, qr/\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]/,
    'the log contains no control character');

done_testing;
