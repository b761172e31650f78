#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The Git server gets a new URL: the doctor and the error at sign-in say what to do,
# and one command moves all accounts and repositories there, or none.

use strict;
use warnings;
use Slipway::API;
use Slipway::Visitor;
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
my $api = Slipway::API->start(db => $db, nginx => \&Slipway::Visitor::unlimited,
    conf => $f->conf(allowed_hosts => 'elsewhere.example.org') . $auth);
sub admin { return slipway_admin($api->conf_file, @_) }
is((admin('key'))[0], 0, 'slipway-admin creates a key');
chown 0, (getpwnam 'nobody')[3], $api->dir . '/secret.key' if is_root();
sub restart {
	my (%more) = @_;
	$api->stop_api;
	$api->write_conf($f->conf(allowed_hosts => 'elsewhere.example.org', %more) . $auth);
	$api->start_api;
	return;
}
restart();
my %b = map { $_ => Slipway::Visitor->new($api, $f) } qw(ann bob);
is($b{$_}->enter($_)->{status}, 200, "$_ signs in") for qw(ann bob);
my $port = $f->port;
my %address = ("$old/team/site" => "$new/team/site", "$old/team/site.git" => "$new/team/site.git",
	'ssh://git@localhost:2222/team/site.git' => 'ssh://git@127.0.0.1:2222/team/site.git',
	'git@localhost:team/site.git' => 'git@127.0.0.1:team/site.git',
	'https://elsewhere.example.org/team/site.git' => 'https://elsewhere.example.org/team/site.git');
my %project;
for my $was (sort keys %address) {
	my $got = $api->post('/api/projects', { name => 'p' . keys %project, repository => $was });
	is($got->{status}, 201, "a project with the address $was is created") or diag($got->{body});
	$project{$was} = $got->{json}{id};
}
my $site = $project{"$old/team/site"};
is($b{ann}->visit('GET', "/api/git/branches?projectId=$site")->{status}, 200, 'ann reads branches');
my $state = sub { # everything that is stored about addresses
	return join "\n",
	    map { $db->sql("SELECT $_") } "id, forge, forge_id FROM user WHERE forge IS NOT NULL ORDER BY id",
	    'user_id, server FROM git_token ORDER BY user_id',
	    'project_id, server, repository, repo_id, path FROM git_repo',
	    'forge, login, forge_id FROM admin_claim', 'id, repository FROM project ORDER BY id';
};
my $before = $state->();
like($before, qr/\Q$repo->{id}\E\tteam\/site/, 'the id of the repository is stored');

# --- gitserver.url changes, and nothing else
unlike((admin('doctor'))[1], qr/belong to accounts at/, 'the doctor finds nothing before the change');
$f->store->change(sub { $_[0]{url} = $new });
restart(url => $new);
my ($status, $out, $err) = admin('doctor');
is($status, 78, 'the doctor finds accounts at the old URL');
my $bound = qr{2 users belong to accounts at \Q$old\E, .* slipway-admin gitserver move \Q$old\E --dry-run};
like($out, qr{^FAULT  people: $bound}m, 'the doctor names the command') or diag($out);
my $late = Slipway::Visitor->new($api, $f);
my $got = $late->enter('ann');
is($got->{status}, 403, 'an account at the old URL cannot sign in') or diag($got->{body});
like($got->{json}{detail},
    qr/bound to an account at another address of the Git server.*ask an administrator.*gitserver move/,
    'the error at sign-in says to ask an administrator');
unlike($got->{body}, qr/localhost:$port/, 'the error at sign-in does not contain the old URL');
like($api->log, qr{ann is bound to account 7 at \Q$old\E.*run: slipway-admin gitserver move \Q$old\E$}m,
    'the log names the command');
$got = $b{ann}->visit('GET', "/api/git/branches?projectId=$site");
isnt($got->{status}, 200, 'the token of the old URL cannot read branches') or diag($got->{body});
is($b{ann}->visit('GET', '/api/auth/info')->{status}, 200, 'an existing session is still valid');

# --- invalid moves
for my $case ([ 64, qr/missing argument/ ], [ 64, qr/is the configured URL/, $new ],
    [ 64, qr/must have the form/, 'nonsense' ],
	[ 64, qr/unknown option/, $old, '--force' ]) {
	my ($exit, $like, @args) = @$case;
	($status, $out, $err) = admin('gitserver', 'move', @args);
	is($status, $exit, "gitserver move is rejected: @args") or diag("$out$err");
	like($err, $like, "the error gives the reason: @args");
}
is($state->(), $before, 'a rejected move changes nothing');

# --- another server at the new URL
my $stranger = Slipway::Forge->start(type => 'gitea');
$stranger->user(eve => { id => 7 });
$stranger->repo('team/site', id => 4711, users => ['eve'])->commit('main', {}, 'not it');
restart(url => $stranger->url, tls_ca => $stranger->ca);
($status, $out, $err) = admin('gitserver', 'move', $old);
is($status, 65, 'a move to another server is rejected because of its repositories') or diag("$out$err");
like($err, qr/is a different server: 1 of the known repositories have other ids.*nothing was moved/,
    'the error says that it is another server');
is($state->(), $before, 'a rejected move changes nothing');
$stranger->stop;

# --- the move
restart(url => $new, token => scalar $f->token('bob'));
($status, $out, $err) = admin('gitserver', 'move', $old, '--dry-run');
is($status, 0, '--dry-run succeeds') or diag("$out$err");
like($out, qr/^same server: 1 of 1 repositories have the same ids/m,
    '--dry-run compares the repositories');
like($out, qr{^project p\d: \Q$address{$_}\E$}m, "--dry-run lists $_")
    for grep { $address{$_} ne $_ } sort keys %address;
sub counts {
	my ($what) = @_;
	my @counts = ('users: 2', 'tokens: 2', 'repositories: 1', 'logins of administrators: 1',
	    'projects: 4');
	return join '', map { "$_ $what\n" } @counts;
}
like($out, qr/^\Q@{[counts('to move')]}\E/m, '--dry-run counts what it would move');
is($state->(), $before, '--dry-run changes nothing');

# a user with a new login signed in meanwhile, as a second user
$f->rename_user('bob', 'rob');
is(Slipway::Visitor->new($api, $f)->enter('rob')->{status}, 200,
    'bob with a new login becomes a second user');
($status, $out, $err) = admin('gitserver', 'move', $old);
is($status, 65, 'a move with two users of one account is rejected') or diag("$out$err");
like($out, qr/^account 8: bob at the old URL, rob at the new one$/m, 'the move names both users');
like($err, qr/delete one user of each/, 'the error says to delete one of them');
is((admin('user', 'delete', 'rob'))[0], 0, 'the second user is deleted');
# and a login of auth.admins was claimed again
$db->sql("INSERT INTO admin_claim (forge, login, forge_id) VALUES ('$new', 'ann', '7')");
($status, $out, $err) = admin('gitserver', 'move', "$old/");
is($status, 0, 'the move succeeds') or diag("$out$err");
like($out, qr/^\Q@{[counts('moved')]}\E/m, 'the move counts what it moved');
is($api->get("/api/projects/$project{$_}")->{json}{repository}, $address{$_},
    "the address $_ becomes $address{$_}")
    for sort keys %address;
unlike($state->() =~ s/^.*rob.*$//mgr, qr/localhost/, 'nothing is left at the old URL');
is($db->sql("SELECT repository, repo_id, path FROM git_repo") =~ s/\s+/ /gr =~ s/ $//r,
    "$new/team/site " . $repo->id . ' team/site', 'the stored id of the repository does not change');
is($b{ann}->visit('GET', "/api/git/branches?projectId=$site")->{status}, 200,
    'ann reads branches in her existing session');
$got = $late->enter('ann');
is($got->{status}, 200, 'ann signs in') or diag($got->{body});
is($got->{json}{user}{role}, 'admin', 'ann has her role');
is(Slipway::Visitor->new($api, $f)->enter('rob')->{json}{user}{id},
    $db->sql("SELECT MIN(id) FROM user WHERE forge_id = '8'") =~ s/\s+$//r,
    'bob signs in with his new login');
unlike((admin('doctor'))[1], qr/belong to accounts at/, 'the doctor finds nothing after the move');
($status, $out) = admin('gitserver', 'move', $old);
is($status, 0, 'a second move succeeds');
like($out, qr/^users: 0 moved\n/m, 'a second move changes nothing');
is_deeply([$f->complaints], [], 'the server received only valid requests');
done_testing;
