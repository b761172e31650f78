#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The first quarter of an hour with the console: an empty service guides a user who
# signs in by the Git server to a project, a template and a deployment, then to an
# environment, a second deployment and back.  The runner really deploys.

use strict;
use warnings;
use Slipway::Browser;
use Slipway::Forge;
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $forge = Slipway::Forge->start;
$forge->user(ann => { id => 7, name => 'Ann Lee', email => 'ann@example.org' });
my $all = Slipway::Whole->start(api => $forge->conf . "[auth]\nadmins = ann\n", runner => $forge->conf);
my $api = $all->api;
my $redirect = $api->url . '/slipway/sign-in';
$forge->store->change(sub { $_[0]{clients}{ $forge->client_id }{redirect_uris} = [$redirect] });
$api->write_conf("$api->{extra}\n[gitserver]\nredirect_uri = $redirect\n");
$api->reload or die 'the workers were not replaced';
my $repo = $forge->repo('team/site', users => ['ann']);
$repo->commit('main', { 'index.html' => "<h1>One</h1>\n" }, 'Say one');
$forge->repo('team/other', users => ['ann']);
my $www = tempdir() . '/www';
mkdir $www;
chmod 0777, $www or die "$www: $!";
sub page_of_site { return slurp("$www/site/index.html") // '' }

# --- signing in; what an empty service says
my $page = Slipway::Browser->start(origin => $api->url, certificate => $api->cacert);
$page->cdp('Network.enable');
$page->cdp('Network.setExtraHTTPHeaders', headers => { 'X-Test-Login' => 'ann' });
$page->go('/slipway/')->click('.ways .ways button');
ok($page->wait_for('.first', 'Your first deployment takes three steps'),
    'an empty service says how to begin');
is(scalar($page->texts('.first li')), 3, 'in three steps');
my %empty = ('/projects' => 'Add one to deploy it', '/deployments' => 'Nothing has been deployed yet',
	'/notifiers' => 'sends mail, a chat message or a signed webhook',
	'/variables' => 'There are no shared variables');
for my $path (sort keys %empty) {
	$page->go("/slipway$path");
	ok($page->wait_for('.empty', $empty{$path}), "the empty page $path says so");
}
$page->go('/slipway/')->click('.first a.button');

# --- 1: a project from the repositories of the Git server
$page->click('#new-project-repository');
ok($page->wait_for('[role=option]', 'team/site'), 'the repositories of the Git server are offered');
$page->type('#new-project-repository', 'sit');
ok($page->wait_until('document.querySelectorAll("[role=option]").length === 1'),
    'the repositories of the Git server are searched');
$page->press('Down', 'Enter')->click('#new-project .primary');

# --- 2: a template
ok($page->wait_for('.templates', 'Simple Deploy Pipeline'), 'a new project is asked for its pipeline');
$page->js('[...document.querySelectorAll(".template")].find((b) =>'
    . ' b.textContent.startsWith("Simple Deploy")).click()');
ok($page->wait_for('.presets', 'DEPLOY_DIR'), 'a template shows its presets before it is used');
is(scalar($page->texts('details.script')), 3, 'a template shows its scripts before it is used');
$page->click('#new-pipeline .primary');
ok($page->wait_for('.step h2', 'Build'), 'its steps can be edited');
$page->go('/slipway/projects/1');
ok($page->wait_for('.empty a', 'Deploy'), 'the project says what comes next');
$page->click('.empty a');

# --- 3: deploying
ok($page->wait_for('#deploy [name="env.DEPLOY_DIR"]'), 'the deploy form asks what the template needs');
ok($page->wait_for('aside', 'Nothing is live yet'), 'the deploy form says that nothing is live');
ok($page->wait_for('.commits .subject', 'Say one'), 'the deploy form shows the commit to deploy');
$page->type('[name="env.DEPLOY_DIR"]', "$www/site")->click('#deploy .primary');
ok($page->wait_for('h1 .status', 'Succeeded'), 'its page follows the deployment to its end');
is(page_of_site(), "<h1>One</h1>\n", 'the site is deployed');
$page->go('/slipway/');
ok($page->wait_for('.place .live', 'Say one'), 'the board shows what is live');

# --- an environment, and back
$page->go('/slipway/projects/1/environments');
ok($page->wait_for('.empty', 'such as staging and production'),
    'a page without environments says what they are');
$page->click('.empty button')->type('#new-environment [name=name]', 'production');
$page->click('#new-environment .entries-field > button');
$page->type('.entry [data-key=key] input', 'DEPLOY_DIR')->type('.entry [data-key=value] input', "$www/site");
$page->click('#new-environment .primary');
ok($page->wait_for('.card h2', 'production'), 'an environment is added');
sub deploys {
	my ($message) = @_;
	$page->go('/slipway/projects/1/deploy');
	$page->wait_for('.commits .subject', $message) if $page->wait_for('#deploy');
	my $value = $page->js('return document.querySelector("[name=\"env.DEPLOY_DIR\"]").value');
	return if $value ne "$www/site";
	$page->click('#deploy .primary');
	return $page->wait_for('h1 .status', 'Succeeded');
}
ok(deploys('Say one'), 'the only environment is the one that is deployed to');
$repo->commit('main', { 'index.html' => "<h1>Two</h1>\n" }, 'Say two');
$page->go('/slipway/projects/1/deploy');
ok($page->wait_for('aside', '1 commit more than what is live'), 'the next commit is what changes');
ok(deploys('Say two'), 'the next commit is deployed');
is(page_of_site(), "<h1>Two</h1>\n", 'the site has changed');
$page->go('/slipway/projects/1')->click('[aria-label="Roll back production"]');
$page->type('dialog [name=reason]', "Too early\n");
ok($page->wait_for('h1 .status', 'Succeeded'), 'a rollback succeeds');
ok($page->wait_for('.facts', 'Too early'), 'its page says why');
is(page_of_site(), "<h1>One</h1>\n", 'the site is as it was');
$page->go('/slipway/');
ok($page->wait_for('.place .live', 'Say one'), 'the board shows what is live again');

$page->stop;
done_testing;
