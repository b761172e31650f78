#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The Git server gets a new address: the doctor and the refusal at sign-in name
# what to do, and one command moves accounts and repositories there, or nothing.

use strict;
use warnings;
use Slipway::API;
use Slipway::Browser;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Test;
use Test::More;

my $db = Slipway::DB->start;
my $f = Slipway::Forge->start(type => 'gitea');
$f->user(ann => { id => 7 });
$f->user(bob => { id => 8 });
my $repo = $f->repo('team/site', private => 1, users => [qw(ann bob)]);
$repo->commit('main', {}, 'first');
my $old = $f->url;
my $new = $old =~ s/localhost/127.0.0.1/r;
my $auth = "[auth]\nadmins = ann\nsignup = viewer\n";
my $api = Slipway::API->start(db => $db, nginx => \&Slipway::Browser::unlimited, conf => $f->conf(allowed_hosts => 'elsewhere.example.org') . $auth);
sub admin { return slipway_admin($api->conf_file, @_) }
is((admin('key'))[0], 0, 'a key');
chown 0, (getpwnam 'nobody')[3], $api->dir . '/secret.key' if is_root();
sub restart { my (%more) = @_; $api->stop_api; $api->write_conf($f->conf(allowed_hosts => 'elsewhere.example.org', %more) . $auth); $api->start_api; return }
restart();
my %b = map { $_ => Slipway::Browser->new($api, $f) } qw(ann bob);
is($b{$_}->enter($_)->{status}, 200, "$_ signs in") for qw(ann bob);
my $port = $f->port;
my %address = ("$old/team/site" => "$new/team/site", "$old/team/site.git" => "$new/team/site.git",
	'ssh://git@localhost:2222/team/site.git' => 'ssh://git@127.0.0.1:2222/team/site.git',
	'git@localhost:team/site.git' => 'git@127.0.0.1:team/site.git',
	'https://elsewhere.example.org/team/site.git' => 'https://elsewhere.example.org/team/site.git');
my %project;
for my $was (sort keys %address) {
	my $got = $api->post('/api/projects', { name => 'p' . keys %project, repository => $was });
	is($got->{status}, 201, "a project of $was") or diag($got->{body});
	$project{$was} = $got->{json}{id};
}
my $site = $project{"$old/team/site"};
is($b{ann}->visit('GET', "/api/git/branches?projectId=$site")->{status}, 200, 'ann reads');
my $state = sub { # all that is stored of addresses
	return join "\n", map { $db->sql("SELECT $_") } "id, forge, forge_id FROM user WHERE forge IS NOT NULL ORDER BY id",
	    'user_id, server FROM git_token ORDER BY user_id', 'project_id, server, repository, repo_id, path FROM git_repo',
	    'forge, login, forge_id FROM admin_claim', 'id, repository FROM project ORDER BY id';
};
my $before = $state->();
like($before, qr/\Q$repo->{id}\E\tteam\/site/, 'its number is known');

# --- the address in the settings changes, and nothing else
unlike((admin('doctor'))[1], qr/are bound to accounts at/, 'the doctor finds nothing before');
$f->store->change(sub { $_[0]{url} = $new });
restart(url => $new);
my ($status, $out, $err) = admin('doctor');
is($status, 78, 'the doctor finds it');
like($out, qr{^FAULT  people: 2 users are bound to accounts at \Q$old\E, .* slipway-admin gitserver move \Q$old\E --dry-run}m, 'and names the command') or diag($out);
my $late = Slipway::Browser->new($api, $f);
my $got = $late->enter('ann');
is($got->{status}, 403, 'nobody can sign in') or diag($got->{body});
like($got->{json}{detail}, qr/bound to an account at another address of the Git server.*ask an administrator.*gitserver move/, 'and is told what to ask for');
unlike($got->{body}, qr/localhost:$port/, 'but not the old address');
like($api->log, qr{ann is bound to account 7 at \Q$old\E.*run: slipway-admin gitserver move \Q$old\E$}m, 'the log has the command');
$got = $b{ann}->visit('GET', "/api/git/branches?projectId=$site");
isnt($got->{status}, 200, 'nor is anything read with a token of the other address') or diag($got->{body});
is($b{ann}->visit('GET', '/api/auth/info')->{status}, 200, 'who is signed in stays so');

# --- what is no move
for my $case ([ 64, qr/something is missing/ ], [ 64, qr/is the address in the settings/, $new ], [ 64, qr/must be one like/, 'nonsense' ],
	[ 64, qr/no option/, $old, '--force' ]) {
	my ($exit, $like, @args) = @$case;
	($status, $out, $err) = admin('gitserver', 'move', @args);
	is($status, $exit, "refused: @args") or diag("$out$err");
	like($err, $like, 'in words');
}
is($state->(), $before, 'nothing was moved');

# --- another server at that address
my $stranger = Slipway::Forge->start(type => 'gitea');
$stranger->user(eve => { id => 7 });
$stranger->repo('team/site', id => 4711, users => ['eve'])->commit('main', {}, 'not it');
restart(url => $stranger->url, tls_ca => $stranger->ca);
($status, $out, $err) = admin('gitserver', 'move', $old);
is($status, 65, 'another server is noticed by its repositories') or diag("$out$err");
like($err, qr/is another server: 1 of the repositories that are known have other numbers.*nothing is moved/, 'and said so');
is($state->(), $before, 'nothing was moved');
$stranger->stop;

# --- the move
restart(url => $new, token => scalar $f->token('bob'));
($status, $out, $err) = admin('gitserver', 'move', $old, '--dry-run');
is($status, 0, 'a dry run') or diag("$out$err");
like($out, qr/^same server: 1 of 1 repositories have the same numbers/m, 'compares what is known');
like($out, qr{^project p\d: \Q$address{$_}\E$}m, "would move $_") for grep { $address{$_} ne $_ } sort keys %address;
like($out, qr/^users: 2 to move\ntokens: 2 to move\nrepositories: 1 to move\nlogins of administrators: 1 to move\nprojects: 4 to move\n/m, 'and counts');
is($state->(), $before, 'nothing was moved');

# somebody came in under another name meanwhile, as a second user
$f->rename_user('bob', 'rob');
is(Slipway::Browser->new($api, $f)->enter('rob')->{status}, 200, 'renamed, bob has become a second user');
($status, $out, $err) = admin('gitserver', 'move', $old);
is($status, 65, 'two users of one account') or diag("$out$err");
like($out, qr/^account 8: bob before, rob since$/m, 'are named');
like($err, qr/delete one of each/, 'with what to do');
is((admin('user', 'delete', 'rob'))[0], 0, 'the second one is deleted');
# and a login of auth.admins was claimed again
$db->sql("INSERT INTO admin_claim (forge, login, forge_id) VALUES ('$new', 'ann', '7')");
($status, $out, $err) = admin('gitserver', 'move', "$old/");
is($status, 0, 'then all is moved') or diag("$out$err");
like($out, qr/^users: 2 moved\ntokens: 2 moved\nrepositories: 1 moved\nlogins of administrators: 1 moved\nprojects: 4 moved\n/m, 'and counted');
is($api->get("/api/projects/$project{$_}")->{json}{repository}, $address{$_}, "$_ is $address{$_}") for sort keys %address;
unlike($state->() =~ s/^.*rob.*$//mgr, qr/localhost/, 'nothing is left at the old address');
is($db->sql("SELECT repository, repo_id, path FROM git_repo") =~ s/\s+/ /gr =~ s/ $//r, "$new/team/site " . $repo->id . ' team/site', 'the number that is known stays');
is($b{ann}->visit('GET', "/api/git/branches?projectId=$site")->{status}, 200, 'ann reads, in the session that she had');
$got = $late->enter('ann');
is($got->{status}, 200, 'and signs in') or diag($got->{body});
is($got->{json}{user}{role}, 'admin', 'as who she was');
is(Slipway::Browser->new($api, $f)->enter('rob')->{json}{user}{id}, $db->sql("SELECT MIN(id) FROM user WHERE forge_id = '8'") =~ s/\s+$//r, 'so does bob, by his new name');
unlike((admin('doctor'))[1], qr/are bound to accounts at/, 'the doctor is content');
($status, $out) = admin('gitserver', 'move', $old);
is($status, 0, 'once more');
like($out, qr/^users: 0 moved\n/m, 'moves nothing');
is_deeply([$f->complaints], [], 'nothing was sent that the server would not take');
done_testing;
