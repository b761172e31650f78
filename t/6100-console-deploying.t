#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# What the console says before and about deployments: the board with locks and
# approvals, the commits that a deployment brings or takes back, filters of the list,
# the variables of environments and projects, templates, charts.

use strict;
use warnings;
use Slipway::API;
use Slipway::Browser;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;
use Test::More;

my $forge = Slipway::Forge->start;
$forge->user(bot => { id => 9 });
my $db = Slipway::DB->start;
my $conf = $forge->conf(token => scalar $forge->token('bot'));
my $api = Slipway::API->start(db => $db, keys => 1, conf => $conf);
my $repo = $forge->repo('team/shop', users => ['bot']);
my @hash = map { $repo->commit('main', { file => "$_\n" }, "Change $_") } 1 .. 6;
$repo->commit("topic/$_", { file => "topic $_\n" }, "Topic $_") for 1 .. 3;

my $page = Slipway::Browser->start(origin => $api->url, certificate => $api->cacert);
$page->pardon(qr/favicon\.ico/);
sub sign_in {
	my ($name, $role) = @_;
	$page->visit('/api/health')->cookie('__Host-slipway' => $api->new_session($name, $role));
	return;
}
sub row { my ($sql) = @_; return ($db->sql($sql))[0] }

my $shop = $api->make('/api/projects', { name => 'Shop', repository => $repo->clone_url,
	defaultBranch => 'main' })->{id};
my $pipeline = $api->make('/api/pipelines', { projectId => $shop, name => 'Deploy',
	steps => [{ name => 'Build', script => 'make' }] })->{id};
my ($staging, $live) = map { $api->make('/api/environments', { projectId => $shop, name => $_ })->{id} }
    qw(staging live);

# Stores a deployment of some commit; its id.
sub deployment {
	my ($environment, $status, %more) = @_;
	my %row = (project_id => $shop, pipeline_id => $pipeline, environment_id => $environment,
		branch => "'main'", commit_hash => "'$hash[3]'", commit_message => "'Change 4'",
		status => "'$status'", '`trigger`' => "'manual'",
		$status eq 'pending' ? () : (started_at => 'NOW(3) - INTERVAL 5 SECOND'),
		$status =~ /^(?:pending|running)$/ ? () : (finished_at => 'NOW(3)'), %more);
	my @names = sort keys %row;
	my ($id) = $db->sql('INSERT INTO deployment (' . join(', ', @names) . ') VALUES ('
	    . join(', ', @row{@names}) . ') RETURNING id');
	$db->sql("UPDATE environment SET live_deployment = $id WHERE id = $environment")
	    if $status eq 'success';
	return $id;
}

# --- the board: what is live, what runs, what waits for whom
my $good = deployment($staging, 'success');
my $approval = deployment($live, 'pending', approval => "'required'", created_by => 1);
deployment($staging, 'running', running_project => 'DEFAULT');
sign_in('ann', 'admin');
$page->go('/slipway/');
ok($page->wait_for('.place:first-child .live', 'Change 4'), 'the board shows what is live');
is(join('|', $page->texts('.place:nth-child(2) .now .status, .place:nth-child(2) .badge')), 'Needs approval',
    'a deployment that needs approval is shown once');
deployment($live, 'pending');
ok($page->wait_for('.place:nth-child(2) .badge'), 'the board follows a new deployment');
is($page->text('.place:first-child .now .status'), 'Running',
    'the board shows that a deployment is running');
like($page->text('.place:first-child .next'), qr/Running:\s+main\s.*Change 4/s, 'and what it deploys');
is(join('|', $page->texts('.place:nth-child(2) .badge')), '1 needs approval',
    'the board shows a required approval, although a newer deployment waits');
like($page->text('.summary-line'), qr/1 running.*1 waiting.*1 needs approval.*0 failed/s,
    'the summary counts each of them once');
axe_ok($page, 'a board with deployments');
$page->click('.place:nth-child(2) .badge');
ok($page->wait_for("tr[data-key='$approval']", 'Needs approval'), 'the badge leads to what waits there');
is(scalar($page->texts('tbody tr')), 2, 'the badge leads to nothing else');
$page->go('/slipway/')->click('.summary-line .running a');
ok($page->wait_for('tbody tr', 'Running'), 'the summary leads to what it counts');
is(scalar($page->texts('tbody tr')), 1, 'and to nothing else');

# --- what an approver decides about
my $vars = '{"GREETING":"hello","TOKEN":null}';
$db->sql("UPDATE deployment SET env_vars = '$vars' WHERE id = $approval");
$page->go("/slipway/deployments/$approval");
ok($page->wait_for('.what-changes', 'Change 4'), 'who approves a deployment sees its commits');
is($page->text('.what-changes .commits li:first-child .subject'), 'Change 4',
    'from its own, not the newest one');
ok($page->wait_for('.facts a', 'Deploy'), 'a deployment names its pipeline');
like(join(' ', $page->texts('.facts .variable')), qr/^GREETING=hello TOKEN=\W+$/,
    'and shows its variables, but no secret');
axe_ok($page, 'a deployment that needs approval');

# --- the list of deployments is narrowed
sub listed {
	return join ' ', @{ $page->js('return [...document.querySelectorAll("tbody tr")]'
		    . '.map((r) => r.dataset.key)') };
}
$page->go("/slipway/deployments?projectId=$shop&environmentId=$live");
$page->choose('[data-key=status]', 'Succeeded');
ok($page->wait_for('.empty', 'No deployment matches'), 'a list without a match says so');
$page->click('.empty a');
ok($page->wait_until('document.querySelectorAll("tbody tr").length === 4'), 'and leads to all deployments');
$page->choose('[data-key=status]', 'Succeeded');
ok($page->wait_until('document.querySelectorAll("tbody tr").length === 1'), 'the list is narrowed by state');
is(listed(), $good, 'to the deployments that have it');
$page->choose('[data-key=projectId]', 'Shop');
$page->choose('[data-key=environmentId]', 'staging');
like($page->url, qr/status=success.*projectId=$shop.*environmentId=$staging/,
    'by project and environment, too');
$page->reload;
ok($page->wait_for("tr[data-key='$good']"), 'the address contains the filters');

$api->make('/api/projects', { name => 'A name that is far longer than a narrow window is wide',
	repository => 'https://git.example.org/a/b' });
$page->size(320, 640)->reload;
$page->wait_for("tr[data-key='$good']");
is($page->overflow, '', 'a long name fits into 320 pixels');
$page->size(1280, 800);

# --- locks: who, why, since when
$api->put("/api/projects/$shop/lock", { reason => 'Audit week', until => '2099-01-02T03:04:05Z' });
$api->put("/api/environments/$live/lock", { reason => 'Fair' });
$db->sql('UPDATE deploy_lock SET since = NOW(3) - INTERVAL 200 MINUTE');
for my $where (['/', '.project:nth-child(2) > .lock-line', 'the board'],
	['/projects', 'tbody .lock-line', 'the list of projects'],
	["/projects/$shop", '.notice.locked', 'the page of the project'],
	["/projects/$shop/deploy", 'main > .notice.locked', 'the deploy form']) {
	my ($path, $css, $name) = @$where;
	$page->go("/slipway$path");
	ok($page->wait_for($css, 'Audit week'), "$name says why the project is locked");
	like($page->text($css), qr/by t-admin, 3 h ago, until 2 Jan 2099/,
	    "$name says by whom and since when");
}
$page->go('/slipway/');
ok($page->wait_for('.place:nth-child(2) .lock-line', 'Fair'), 'the board shows the lock of an environment');
$api->delete("/api/projects/$shop/lock");
$api->delete("/api/environments/$live/lock");

# --- what a deployment changes
$page->go("/slipway/projects/$shop/deploy?environment=$staging");
ok($page->wait_for('aside', '2 commits more than what is live'), 'the newest commit brings two');
like($page->text('.live-now'), qr/^Live: @{[substr $hash[3], 0, 8]}\s+Change 4/, 'the live commit is named');
is_deeply([$page->texts('.commits .subject')], ['Change 6', 'Change 5'], 'with their messages');
sub commit_field { return $page->clear('[name=commitHash]')->type('[name=commitHash]', "$_[0]\t") }
commit_field($hash[3]);
ok($page->wait_for('aside', 'This is what is live'), 'the same commit brings none');
commit_field($hash[1]);
ok($page->wait_for('aside .notice', '2 commits are undone'), 'an older commit takes some back');
is_deeply([$page->texts('.commits.undone .subject')], ['Change 4', 'Change 3'], 'which are listed');
$page->click('[name=branch]');
ok($page->wait_for('[role=option]'), 'a click opens the list of branches');
is(join(' ', sort $page->texts('[role=option]')), 'main topic/1 topic/2 topic/3',
    'all branches are suggested, although the field contains one');
$page->press('Escape');
axe_ok($page, 'a deployment that takes commits back');
$forge->fault('/api/v1/repos/.*/commits', kind => 'status', status => 500);
$page->reload;
ok($page->wait_for('aside .notice', 'Git server'), 'the error of the Git server is shown');
$forge->clear_faults;

# --- without a Git server
$api->write_conf("[secrets]\nkey_file = @{[$api->dir]}/secret.key\n");
$api->reload or die 'the workers were not replaced';
$page->go("/slipway/projects/$shop/deploy?environment=$staging");
ok($page->wait_for('aside', 'cannot list the commits'),
    'without a Git server, the form says what it cannot do');
is(scalar($page->texts('aside .summary, aside .notice')), 0, 'which is no error');
unlike($page->text('main'), qr/GITSERVER/, 'the page names no setting');
$page->clear('[name=branch]')->type('[name=branch]', 'main')->click('#deploy .primary');
ok($page->wait_until('/deployments.\d+$/.test(location.pathname)'), 'the form deploys all the same');

# --- the variables of an environment
sub variables { return $api->get("/api/environments/$staging")->{json}{variables} }
$page->go("/slipway/projects/$shop/environments")->click('[aria-label="Edit staging"]');
$page->type('[name=name]', '-2')->click('.card form > .actions [type=button]');
$page->click('[aria-label="Edit staging"]');
is($page->js('return document.querySelector("[name=name]").value'), 'staging',
    'Cancel discards what was typed');
axe_ok($page, 'the form of an environment');
my $last = '.entries .entry:last-child [data-key';
$page->click('.entries-field > button')->type("$last=key] input", 'HOST')->type("$last=value] input", 'www');
$page->click('.entries-field > button')->click("$last=secret] input");
$page->type("$last=key] input", 'PASSWORD')->type("$last=value] input", 'hunter2');
is($page->js("return document.querySelector('$last=value] input').type"), 'password',
    'a secret is not shown while it is typed');
unlike($page->js('return JSON.stringify(Object.entries(sessionStorage))'), qr/hunter2/,
    'no draft contains a secret');
$page->click('.card form .primary');
ok($page->wait_for('.variable', 'PASSWORD='), 'a secret variable is stored')
    or diag(explain(variables()));
is_deeply([map { [$_->{key}, $_->{value}, $_->{secret} ? 1 : 0] } @{ variables() }],
    [['HOST', 'www', 0], ['PASSWORD', undef, 1]], 'with the other one');
sub secret { return row("SELECT secret_values FROM environment WHERE id = $staging") }
my $sealed = secret();
ok($sealed, 'the secret is sealed');
$page->click('[aria-label="Edit staging"]')->clear('.entry:first-child [data-key=value] input');
$page->type('.entry:first-child [data-key=value] input', 'www2')->click('.card form .primary');
ok($page->wait_for('.variable', 'HOST=www2'), 'the other one is changed');
is(secret(), $sealed, 'the secret of a preset stays when another one is changed');

# --- the deploy form and the variables of an environment
$api->put("/api/projects/$shop", { envPresets => [
	{ key => 'HOST', label => 'Host', type => 'input', default => 'local' },
	{ key => 'PASSWORD', label => 'Password', type => 'input', secret => \1, required => \1 } ] });
$page->go("/slipway/projects/$shop/deploy?environment=$live");
sub host { return $page->js('return document.querySelector("[name=\"env.HOST\"]")?.value') }
sub needs_password {
	return $page->js('return document.querySelector("[name=\"env.PASSWORD\"]").required ? "yes" : "no"');
}
ok($page->wait_for('#deploy'), 'the deploy form of an environment without variables');
is(host() . ' ' . needs_password(), 'local yes', 'it has the defaults of the presets');
$page->choose('[name=environmentId]', 'staging');
is(host() . ' ' . needs_password(), 'www2 no', 'another environment brings its own values');
$page->type('[name="env.HOST"]', '.example.org');
$page->choose('[name=environmentId]', 'live');
is(host() . ' ' . needs_password(), 'www2.example.org yes', 'a value that was typed stays');
$page->reload;
ok($page->wait_until('document.querySelector("[name=\"env.HOST\"]")?.value === "www2.example.org"'),
    'also after a reload');

# --- what a deployer may set
sign_in('dora', 'deployer');
$page->go("/slipway/projects/$shop/deploy?from=$approval");
ok($page->wait_for('aside', 'No preset names GREETING'), 'the form says which variables it leaves out');
is($page->js('return document.querySelectorAll("[name=more]").length'), 0,
    'and has no field for what would be rejected');
sign_in('ann', 'admin');
$api->put("/api/projects/$shop", { envPresets => [] });

# --- shared variables
my $shared = $api->make('/api/variables', { key => 'TOKEN', value => 'old', secret => \1,
	projects => [$shop] })->{id};
sub sealed { return row("SELECT sealed FROM variable_project WHERE variable_id = $shared") }
my $before = sealed();
$page->go('/slipway/variables')->click('[aria-label="Edit TOKEN"]');
ok($page->wait_for('dialog .hint', 'the secret stays as it is'), 'a shared variable is edited in a dialog');
axe_ok($page, 'the dialog that edits a variable');
$page->type('dialog [name=description]', 'Of the registry')->click('dialog .primary');
ok($page->wait_for('tbody tr', 'Of the registry'), 'its description is changed');
is(sealed(), $before, 'a secret value stays when its description is changed');
$page->click('[aria-label="Edit TOKEN"]')->type('dialog [name=value]', "new\n");
ok(poll(60, sub { sealed() ne $before }), 'a new value replaces it');

# --- templates
$page->go("/slipway/projects/$shop/pipelines/new");
ok($page->wait_for('.templates li:nth-child(10)'), 'the templates are listed');
my (undef, @names) = map { (split /\n/)[0] } $page->texts('.templates li');
is_deeply(\@names, [sort { lc $a cmp lc $b } @names], 'by name');
is($page->text('.tabs [aria-current]'), 'Pipelines', 'the page belongs to the pipelines of the project');
$page->size(320, 640)->reload;
ok($page->wait_for('.templates li:nth-child(3)'), 'a narrow window shows the templates, too');
$page->click('.templates li:nth-child(3) button');
ok($page->wait_until('(() => { const { top } = document.querySelector(".stack").getBoundingClientRect();'
	. ' return top < innerHeight; })()'), 'a narrow window shows the presets of the chosen template');
$page->size(1280, 800);

# --- durations of the last runs
$db->sql("UPDATE deployment SET status = 'canceled', finished_at = NOW(3)"
    . " WHERE status IN ('pending', 'running')");
deployment($staging, $_ % 4 ? 'success' : 'failed') for 1 .. 60;
$page->go("/slipway/projects/$shop");
ok($page->wait_for('.chart', 'Last 50 runs'), 'the last fifty runs are drawn');
is(scalar @{ $page->js('return [...document.querySelectorAll(".chart a")].map((a) => a.ariaLabel)') }, 50,
    'each with a text');
like($page->text('.chart'), qr/7\d % succeeded .* typically 5\.\d s/, 'with the rate and the median');
like($page->js('return document.querySelector(".chart a").ariaLabel'), qr/^Deployment \d+: \w+ in 5\.\d s$/,
    'the text says which, how it ended and how long it took');

for my $theme (qw(light dark)) {
	$page->emulate('prefers-color-scheme' => $theme);
	axe_ok($page, "the page of a project with charts in $theme colors");
}

# --- more than one page
$db->sql('INSERT INTO project (name, repository, project_dir, env_presets)'
    . " SELECT CONCAT('P', LPAD(seq, 3, 0)), 'https://x/y/z', CONCAT('p', seq), '[]' FROM seq_1_to_520");
$page->go('/slipway/');
ok($page->wait_for('.pager', 'Page 1 of 2'), 'a board of many projects has pages');
$page->click('.pager a');
ok($page->wait_for('.project h2', 'Shop'), 'which are shown');

$page->stop;
done_testing;
