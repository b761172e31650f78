#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Clients generated from the OpenAPI document by third-party generators compile
# and deploy: each authenticates with a token, creates a project and a pipeline,
# sends a project back as it was read, deploys and reads the log.  Without access
# to the registries only this test's own client runs, which uses nothing but the
# document; SLIPWAY_JUDGES=all requires the others too.

use strict;
use warnings;
use File::Path qw(make_path remove_tree);
use Slipway::Npm;
use Slipway::Python;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $all = Slipway::Whole->start;
my $api = $all->api;
my $repo = $all->runner->repo({ 'README' => "a sample\n" });
my $got = $api->get('/api/openapi.json');
my $doc = $got->{json};
my $file = spew(tempdir() . '/openapi.json', $got->{body});
my $token = $api->new_token('maintainer', 'robot');
my @arguments = ($api->url, $token, $repo);

# Checks what a client printed: the outcome, then the log.
sub deployed {
	my ($name, $label, $status, $out, $err) = @_;
	is($status, 0, "$name: the client runs") or diag($out . $err);
	my ($outcome, $log) = split /\n/, $out, 2;
	is($outcome, 'success', "$name: the deployment succeeds");
	like($log || '', qr/^hello \Q$label\E from maintainer$/m, "$name: the client reads the log");
}
sub run_ok {
	my ($what, @command) = @_;
	my ($status, $out, $err) = run_cmd(@command);
	is($status, 0, $what) or diag(substr $out . $err, 0, 3000);
	return $status == 0;
}

# --- a client that knows only the document: it calls operations by their ids
my %operation;
for my $path (keys %{ $doc->{paths} }) {
	$operation{ $doc->{paths}{$path}{$_}{operationId} } = [ uc, $path ]
	    for keys %{ $doc->{paths}{$path} };
}
sub call {
	my ($id, $body, %path) = @_;
	my ($method, $path) = @{ $operation{$id} };
	$path =~ s/\{(\w+)\}/$path{$1}/g;
	my $answer = $api->request($method, $path, $body, { Authorization => "Bearer $token" });
	like($answer->{status}, qr/^2/, "operationId $id: the call succeeds") or diag($answer->{body});
	return $answer->{json} || $answer->{body};
}
my $me = call('getCurrentUser');
my $project = call('createProject',
    { name => 'made by operations', repository => $repo, defaultBranch => 'main',
	envPresets => [ { key => 'GREETING', label => 'Greeting', type => 'input', default => 'hello' } ] });
call('updateProject', $project, id => $project->{id});
my $pipeline = call('createPipeline', { projectId => $project->{id}, name => 'Greet',
	steps => [ { name => 'Greet', script => "echo \"\$GREETING \$NAME from $me->{role}\"" } ] });
my $made = call('createDeployment',
    { projectId => $project->{id}, pipelineId => $pipeline->{id}, envVars => { NAME => 'operations' } });
my $now = $all->wait($made->{id});
deployed('operations', 'operations', 0, "$now->{status}\n" . call('getLog', undef, id => $made->{id}), '');

# --- TypeScript
sub typescript {
	my ($npm) = @_;
	my %clients = (
		fetch => [ 'openapi-fetch',
		    [ 'node_modules/.bin/openapi-typescript', $file, '-o', 'fetch/api.ts' ] ],
		sdk => [ 'openapi-ts',
		    [ 'node_modules/.bin/openapi-ts', '-i', $file, '-o', 'sdk', '-l', 'silent',
			'-p', '@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk' ] ],
	);
	# a directory for this run, with the shared packages
	my $dir = tempdir() . '/typescript';
	make_path($dir);
	symlink "$npm/node_modules", "$dir/node_modules" or die "node_modules: $!";
	my @generated = grep {
		my ($label, $generate) = @{ $clients{$_} };
		spew("$dir/$_-client.ts", slurp("$npm/$_-client.ts"));
		run_ok("$label: the client is generated", { cwd => $dir }, @$generate);
	} sort keys %clients;
	run_ok('openapi-fetch, openapi-ts: the clients compile', { cwd => $dir }, 'node_modules/.bin/tsc',
	    qw(--strict --target ES2022 --module commonjs --moduleResolution node10),
	    qw(--esModuleInterop --skipLibCheck), '--lib', 'ES2022,DOM,DOM.Iterable',
	    qw(--rootDir . --outDir out), map { "$_-client.ts" } @generated) or return;
	for my $name (@generated) {
		my ($label) = @{ $clients{$name} };
		deployed($label, $label,
		    run_cmd({ cwd => $dir, env => { NODE_EXTRA_CA_CERTS => $api->cacert } },
			'timeout', 1200, 'node', "out/$name-client.js", @arguments));
	}
}

# --- Python
sub python {
	my ($python) = @_;
	my $dir = tempdir() . '/python';
	make_path($dir);
	spew("$dir/client.py", slurp(srcdir() . '/t/python/client.py'));
	spew("$dir/settings.yaml",
	    "post_hooks: []\ncontent_type_overrides:\n  image/svg+xml: application/octet-stream\n");
	my $label = 'openapi-python-client';
	run_ok("$label: the client is generated", { cwd => $dir }, "$python/venv/bin/openapi-python-client",
	    'generate', '--path', $file,
		qw(--output-path made --meta none --config settings.yaml --fail-on-warning)) or return;
	run_ok("$label: the client compiles", { cwd => $dir }, "$python/venv/bin/python",
	    qw(-m compileall -q made client.py)) or return;
	deployed($label, $label,
	    run_cmd({ cwd => $dir }, 'timeout', 1200, "$python/venv/bin/python", 'client.py',
		@arguments, $api->cacert));
}

my ($npm, $python) = (npm_dir(), python_dir());
note('clients that ran: ' . join ', ', 'operations', ($npm ? ('openapi-fetch', 'openapi-ts') : ()),
    ($python ? 'openapi-python-client' : ()));
if (($ENV{SLIPWAY_JUDGES} || '') eq 'all') {
	ok($npm, 'the npm registry can be reached');
	ok($python, 'the Python registry can be reached');
}
typescript($npm) if $npm;
python($python) if $python;
done_testing;
