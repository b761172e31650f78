#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# The hook for bare repositories: git push over such a repository starts deployments.

use strict;
use warnings;
use utf8;
use Cpanel::JSON::XS ();
use Encode qw(encode_utf8);
use Digest::SHA ();
use Slipway::Test;
use Slipway::Whole;
use Test::More;

my $all = Slipway::Whole->start(api => "[gitserver]\ntype = git\n",
    runner => "[gitserver]\ntype = git\n[runner]\ncatch_up = 0\n");
my ($api, $runner) = ($all->api, $all->runner);
my $dir = tempdir();
my ($bare, $work) = ("$dir/srv/team/site.git", "$dir/work");
$ENV{GIT_CONFIG_GLOBAL} = '/dev/null';
$ENV{GIT_AUTHOR_NAME} = $ENV{GIT_COMMITTER_NAME} = 'Ann';
$ENV{GIT_AUTHOR_EMAIL} = $ENV{GIT_COMMITTER_EMAIL} = 'ann@example.org';
sub git {
	my (@args) = @_;
	my ($status, $out, $err) = run_cmd('git', @args);
	die "git @args: $out$err" if $status != 0;
	return $out =~ s/\s+\z//r;
}
sub work { return git('-C', $work, @_) }
git('init', '-q', '--bare', '-b', 'main', $bare);
git('init', '-q', '-b', 'main', $work);
work('remote', 'add', 'origin', $bare);
my $project = $all->project($bare);
my %pipeline = map { $_ => $all->pipeline($project, 'cat file') } qw(site docs tag);
my $got = $api->put("/api/projects/$project", { triggers => [
	{ branch => 'main', pipelineId => $pipeline{site}, envVars => {} },
	{ branch => 'main', pipelineId => $pipeline{docs}, envVars => {}, paths => ['docs/**'] },
	{ tag => 'v*', pipelineId => $pipeline{tag}, envVars => {} } ] });
is($got->{status}, 200, 'triggers are set') or diag($got->{body});
my $access = $api->put("/api/projects/$project/hook-secret")->{json};
my $script = srcdir() . '/src/forge/post-receive';
symlink $script, "$bare/hooks/post-receive" or die $!;

# A push; what the hook says.
sub pushed {
	my (@what) = @_;
	my ($status, undef, $err) = run_cmd('git', '-C', $work, 'push', '-q', 'origin', @what);
	is($status, 0, "git push @what succeeds") or diag($err);
	return join "\n", $err =~ /^remote: (slipway: .*?)\s*$/mg;
}
my $n = 0;
sub commit {
	my ($message, $file) = @_;
	$file ||= 'file';
	work('commit', '-q', '--allow-empty', '-m', 'first') if !$n++;
	my ($parent) = "$work/$file" =~ m{^(.*)/};
	mkdir $parent if !-d $parent;
	spew("$work/$file", "$n\n");
	spew("$work/file", "$n\n") if !-e "$work/file";
	work('add', '-A');
	work('commit', '-q', '-m', encode_utf8($message));
	return work('rev-parse', 'HEAD');
}
sub all { return @{ $api->get("/api/deployments?projectId=$project&limit=100")->{json}{data} } }

# --- settings
my $first = commit('first');
is(pushed('main'), 'slipway: set slipway.url in the configuration of the repository',
    'without settings the hook says what to do, and the push succeeds');
git('-C', $bare, 'config', 'slipway.url', $api->url . "/api/hooks/$project");
like(pushed('main:refs/heads/other'), qr/set slipway\.secretFile/, 'the next setting is missing');
git('-C', $bare, 'config', 'slipway.secretFile', "$dir/secret");
like(pushed('main:refs/heads/a'),
    qr/^slipway: the push is not reported: there is no file \S+secret .*; write the/, 'a missing file');
mkdir "$dir/secret" or die;
like(pushed('main:refs/heads/b'), qr/^slipway: .* is no file$/, 'a directory');
rmdir "$dir/secret" or die;
for my $empty ('', "\n", "\r\nsecret\n") {
	spew("$dir/secret", $empty);
	like(pushed('main:refs/heads/c' . length $empty),
	    qr/^slipway: the push is not reported: the first line of \S+ .* is empty; write the/,
	    'an empty file of ' . length($empty) . ' bytes');
}
SKIP: {
	skip 'only root can be another user', 2 if !is_root();
	chmod 0, "$dir/secret";
	my ($status, $out, $err) = run_cmd('setpriv', '--reuid=65534', '--clear-groups', 'env',
	    "GIT_DIR=$bare", 'GIT_CONFIG_COUNT=1', 'GIT_CONFIG_KEY_0=safe.directory',
	    'GIT_CONFIG_VALUE_0=*', 'sh', $script);
	like($err,
	    qr/^slipway: the push is not reported: nobody may not read \S+ .*; let those who push read it/,
	    'a file that the person who pushes may not read') or diag("$status $out");
	is($out, '', 'nothing else is printed');
}
spew("$dir/secret", "wrong\n", 0600);
like(pushed('main:refs/heads/third'), qr/third: the push could not be reported/,
    'a certificate of an unknown CA is rejected');
git('-C', $bare, 'config', 'slipway.caFile', $api->cacert);
like(pushed('main:refs/heads/fourth'), qr/fourth: status 401: The signature is missing or wrong/,
    'with the wrong secret, the hook says what the service answered');
spew("$dir/secret", "$access->{secret}\n", 0600);
is(scalar all(), 0, 'nothing is deployed yet');

# --- pushes
my $hash = commit("Größe \"x\" \\ 1\n\nWith\ta tab and\nlines");
my ($said) = pushed('main') =~ /^slipway: main: started deployment (\d+)$/;
ok($said, 'the hook names the deployment');
my $d = $all->wait($said);
is("$d->{status} $d->{commitHash} $d->{branch}", "success $hash main", 'the pushed commit is deployed');
is($d->{commitMessage} =~ s/\n\z//r, "Größe \"x\" \\ 1\n\nWith\ta tab and\nlines",
    'the deployment has the message of the commit');
is($d->{pipelineId}, $pipeline{site}, 'a trigger with paths does not start for other files');
commit('docs', 'docs/a "b".txt');
like(pushed('main'), qr/^slipway: main: started deployment \d+ \d+$/, 'a change of its files starts it');
commit('no deployment [skip ci]');
like(pushed('main'), qr/^slipway: main: nothing to deploy\. .*\[skip ci\]/, 'a push can be skipped');
work('tag', '-a', '-m', 'release', 'v1');
like(pushed('v1'), qr/^slipway: v1: nothing to deploy\. .*\[skip ci\]/, 'so can the tag of such a commit');
$hash = commit('release');
work('tag', '-a', '-m', 'release', 'v2');
my @said = split /\n/, pushed('main', 'v2');
is(scalar @said, 2, 'a push of a branch and a tag is two events');
my ($tag) = join("\n", @said) =~ /v2: started deployment (\d+)/;
$d = $all->wait($tag);
is("$d->{status} $d->{commitHash} $d->{tag} $d->{pipelineId}", "success $hash v2 $pipeline{tag}",
    'the commit of an annotated tag is deployed');
work('reset', '-q', '--hard', 'HEAD~1');
like(pushed('-f', 'main'), qr/nothing to deploy.*skip ci/, 'a forced push back is an event of its own');
work('reset', '-q', '--hard', $hash);
like(pushed('main'), qr/started deployment/, 'the same push a second time starts a deployment again');
like(pushed('--delete', 'other'), qr/nothing to deploy\. The branch or tag was deleted/, 'a deletion');
git('-C', $bare, 'config', 'slipway.url', 'https://127.0.0.1:1/api/hooks/1');
commit('while the service is away');
like(pushed('main'), qr/main: the push could not be reported/, 'the push succeeds without the service');
is(run_cmd('grep', '-rq', $access->{secret}, $script) != 0, 1, 'the secret is in the file only');

# --- events of Gogs and soft-serve
my %sent = (
	Gogs => [ { full_name => 'team/site', id => 3 }, { login => 'ann' }, '' ],
	SoftServe => [ { name => 'team/site', id => 3 }, { username => 'ann' }, 'sha256=' ],
);
for my $kind (sort keys %sent) {
	my ($repository, $sender, $prefix) = @{ $sent{$kind} };
	my $deliver = sub {
		my ($event, $body, $secret) = @_;
		my $text = Cpanel::JSON::XS->new->encode({ repository => $repository, sender => $sender,
			%$body });
		my $mac = Digest::SHA::hmac_sha256_hex($text, $secret || $access->{secret});
		my %github = $kind eq 'Gogs'
		    ? ('X-Github-Event' => $event, 'X-Github-Delivery' => "$kind-" . ++$n) : ();
		return $api->as('none')->post("/api/hooks/$project", $text, { %github,
			"X-$kind-Event" => $event, "X-$kind-Delivery" => "$kind-$n",
			"X-$kind-Signature" => $prefix . $mac });
	};
	my @commits = ({ id => $hash, message => "by $kind" },
		{ id => '1' x 40, message => 'older [skip ci]' });
	my %push = (ref => 'refs/heads/main', before => '1' x 40, after => $hash, commits => \@commits);
	is($deliver->(push => \%push, 'wrong')->{status}, 401, "$kind: a wrong signature is rejected");
	$got = $deliver->(push => \%push);
	is($got->{status}, 202, "$kind: a push is accepted") or diag($got->{body});
	is($got->{json}{data}[0]{commitMessage}, "by $kind",
	    "$kind: the message is that of the pushed commit");
	$got = $deliver->(push => { %push, before => '2' x 40,
		commits => [ { id => $hash, message => '[no ci]' } ] });
	is($got->{status}, 204, "$kind: a push can be skipped");
	is($deliver->(push => { %push, after => '0' x 40, commits => [] })->{status}, 204,
	    "$kind: a deletion starts nothing");
	is($deliver->(release => {})->{status}, 204, "$kind: another event starts nothing");
	$got = $kind eq 'Gogs'
	    ? $deliver->(create => { ref => 'v2', ref_type => 'tag', sha => $hash })
	    : $deliver->(push => { %push, ref => 'refs/tags/v2', before => '0' x 40 });
	is($got->{status}, 202, "$kind: a tag is accepted") or diag($got->{body});
	is($got->{json}{data}[0]{tag}, 'v2', "$kind: the tag is deployed");
	is($deliver->(create => { ref => 'topic', ref_type => 'branch', sha => $hash })->{status}, 204,
	    "$kind: a new branch is announced by its push");
	local $repository->{ $kind eq 'Gogs' ? 'full_name' : 'name' } = 'other/repository';
	is($deliver->(push => { %push, before => '3' x 40 })->{status}, 422,
	    "$kind: a push to another repository is rejected");
}
$_->stop for $runner, $api, $all->db;
done_testing;
