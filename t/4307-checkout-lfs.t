#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# Files of Git LFS, from a server with the batch API: the checkout has their content, or
# fails.  The repository cannot redirect it, and no other host gets a credential.

use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use MIME::Base64 qw(encode_base64);
use Test::More;
use Slipway::Forge;
use Slipway::Spool;
use Slipway::Sshd;
use Slipway::Test;

note(is_root() ? 'as root' : 'without root');
my $forge = Slipway::Forge->start(type => 'gitea');
my $other = Slipway::Forge->start(type => 'gitea');
$_->user(ann => { id => 7 }) for $forge, $other;
my $token = $forge->token('ann');
my $attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n";
my %ca = (tls_ca => slurp($forge->ca) . slurp($other->ca));

sub repo { my ($path, %o) = @_; return $forge->repo($path, private => 1, users => ['ann'], %o) }
sub deploy {
	my ($repo, %o) = @_;
	$forge->forget_requests;
	$other->forget_requests;
	return job_run(repository => $repo->clone_url, branch => 'main', credential => "any\n$token",
	    lfs => 1, allow_local => 0, checkout_timeout => 60, %ca, steps => ['cat [!b]*.bin'], %o);
}
# The options with which the next job has the workspace of this one.
sub after {
	my ($job) = @_;
	my ($state) = map { $_->[1] } grep { $_->[0] eq 'objects' } job_result($job);
	return (uid => $job->{uid}, workspace => $job->{workspace}, objects => $state);
}
sub ends {
	my ($job, $end, $what) = @_;
	return is(scalar job_end($job), $end, $what) || diag(job_log($job));
}
sub fails {
	my ($job, $detail, $what) = @_;
	ends($job, 'failed checkout_failed', "$what fails the checkout");
	like((job_end($job))[1], $detail, "$what: the detail says why");
	is(job_steps($job), '0:skipped', "$what: no step runs");
	return;
}
sub downloads {
	return scalar grep { $_->{headers}{authorization} } $forge->requests(qr{/objects/[0-9a-f]{64}$});
}
# Names in the log what the step finds of the token and of what git-lfs leaves.
my ($half, $rest) = $token =~ /^(.{8})(.*)$/;
my $hunt = <<"END";
n=$half; n=\${n}$rest
grep -rlF "\$n" . ~ && echo FOUND in files
env | grep -F "\$n" && echo FOUND in the environment
ls -A ~ | grep -v '^slipway-step' | grep slipway && echo FOUND in the home
ls .git/hooks 2>/dev/null && echo FOUND hooks
git config --local -l | grep lfs && echo FOUND in the configuration
git status --short | grep -v plain.bin || :
exit 0
END

# --- content
my $big = join '', map { sha256_hex($_) } 1 .. 20_000;
my $site = repo('team/site');
my %first = ('.gitattributes' => $attributes, 'a.bin' => $site->lfs("first\n"), 'big.bin' => $site->lfs($big),
	'same.bin' => $site->lfs("first\n"));
$site->commit('main', { %first, 'plain.bin' => "not in LFS\n" }, 'first');
my $job = deploy($site, steps => [ { name => 'look', script => $hunt } ]);
ends($job, 'success -', 'a commit with files of Git LFS is checked out');
is(slurp("$job->{workspace}/a.bin"), "first\n", 'a file has its content');
ok(slurp("$job->{workspace}/big.bin") eq $big, 'a large file has its content');
is(slurp("$job->{workspace}/plain.bin"), "not in LFS\n", 'a file that is no pointer stays as it is');
unlike(job_log($job), qr/FOUND|^.M |warning/m, 'a step finds no credential, no hook and no change')
    or diag(job_log($job));
is(downloads(), 2, 'each object is downloaded once');
is($forge->passwords(qr{info/lfs}), $token, 'with the token of the repository');

my ($inode) = (stat "$job->{workspace}/big.bin")[1];
$site->commit('main', { 'new.bin' => $site->lfs("second\n"), 'plain.bin' => undef }, 'second');
$job = deploy($site, after($job), steps => ['cat new.bin; touch made', "git lfs ls-files | wc -l"]);
ends($job, 'success -', 'the next commit is checked out');
like(job_log($job), qr/^second$/m, 'with its file');
is(downloads(), 1, 'only the new object is downloaded');
like((map { $_->[1] } grep { $_->[0] eq 'workspace' } job_result($job))[0], qr/^ready 0 /,
    'to git, content is no change');
is((stat "$job->{workspace}/big.bin")[1], $inode, 'an unchanged file stays');
$job = deploy($site, after($job));
is((stat "$job->{workspace}/big.bin")[1], $inode, 'an unchanged file stays, also after a step wrote a file');
unlink "$job->{workspace}/$_" for 'a.bin', 'big.bin';
$job = deploy($site, after($job));
ok(slurp("$job->{workspace}/big.bin") eq $big, 'a file that a step removed is there again');
is(downloads(), 0, 'from the objects in the clone');

# --- objects that a step changed
my $stored = sub { return "$_[0]{workspace}/.git/lfs/objects/" . join '/', $_[1] =~ /^(..)(..)/, $_[1] };
{
	my $file = $stored->($job, sha256_hex("first\n"));
	ok(-e $file, 'objects are in the clone');
	my $bad = deploy($site, after($job), steps => [ "chmod u+w $file; echo evil! >$file; rm a.bin" ]);
	$job = deploy($site, after($bad));
	ends($job, 'success -', 'after a step changed an object, the next job succeeds');
	is(slurp("$job->{workspace}/a.bin"), "first\n", 'and has the content of the server');
}

# --- objects that are not used any more
{
	$site->commit('main', { 'old.bin' => $site->lfs("old\n") }, 'old');
	my $before = deploy($site);
	my @file = map { $stored->($before, sha256_hex($_)) } "old\n", "second\n";
	my %next = after($before);
	# the checkout touches files that changed in the second of its last look
	my ($second) = $next{objects} =~ /^\d+ (\d+)\d{9} /;
	poll(10, sub { time > $second }) or die 'the clock stands still';
	my $then = time - 40 * 86400;
	utime $then, $then, $file[0] or die "$file[0]: $!";
	# as if it had been then
	my $changed = (run_cmd('stat', '-c', '%.9Z', $file[0]))[1] =~ tr/0-9//dcr;
	$next{objects} =~ s/^([^\n]* )\d+\n/$1$changed\n/ or die $next{objects};
	$site->commit('main', { 'old.bin' => undef }, 'not any more');
	my $got = deploy($site, %next);
	ends($got, 'success -', 'a checkout with an old object succeeds');
	is(join(' ', map { -e $_ ? 'there' : 'gone' } @file), 'gone there', 'and removes it, not the others');
	is(downloads(), 0, 'which are used again');
}

# --- what a server need not give
{
	my $thief = repo('team/thief');
	$thief->commit('main', { '.gitattributes' => $attributes,
		'a.bin' => Slipway::Forge::LFS::pointer(sha256_hex("second\n"), 7) }, 'not its own');
	my $before = deploy($site);
	fails(deploy($thief, after($before)), qr/Object does not exist/,
	    'an object of the former repository');

	$before = deploy($site);
	unlink "$before->{workspace}/a.bin";
	my @offline = (commit => $site->tip('main') =~ s/\n//r, offline => 'The server confirms nothing.');
	my $off = deploy($site, after($before), @offline);
	ends($off, 'success -', 'objects in the clone need no server');
	unlink "$off->{workspace}/$_" for 'a.bin', 'same.bin'; # a file would give it back
	run_cmd('rm', '-r', "$off->{workspace}/.git/lfs");
	fails(deploy($site, after($off), @offline), qr/^The server confirms nothing\.$/, 'a missing object');
	is(scalar $forge->requests, 0, 'which is not fetched while nothing may be');
}

# --- what is missing or wrong
{
	my $gone = repo('team/gone');
	$gone->commit('main', { %first, 'a.bin' => Slipway::Forge::LFS::pointer('ab' x 32, 12) }, 'gone');
	fails(deploy($gone), qr/^Git LFS could not fetch a\.bin.*Object does not exist/, 'a missing object');
	my $wrong = repo('team/wrong');
	$wrong->commit('main', { '.gitattributes' => $attributes, 'a.bin' => $wrong->lfs("right\n") },
	    'wrong');
	spew(Slipway::Forge::LFS::file_of($wrong->dir, sha256_hex("right\n")), "wrong\n", 0644);
	my $bad = deploy($wrong);
	fails($bad, qr/^Git LFS could not fetch a\.bin.*expected OID/, 'an object with other content');
	ok(!-e "$bad->{workspace}/a.bin", 'it is not in the workspace');
	$forge->fault(qr{info/lfs/objects/batch}, kind => 'status', status => 422,
	    type => 'application/vnd.git-lfs+json', body => '{ "message": "No space left on device" }');
	fails(deploy($wrong), qr/^Git LFS could not fetch a\.bin: .*No space left/,
	    'a full disk of the server');
	$forge->clear_faults;
	fails(deploy($site, credential => "any\nwrong"), qr/Authentication failed|could not read/,
	    'a wrong token');
	$site->commit('main', { 'third.bin' => $site->lfs("third\n") }, 'third');
	$forge->fault(qr{info/lfs/objects/batch}, kind => 'status', status => 503, type => 'text/html',
	    body => 'away');
	like(job_log(deploy($site, git_patience => 100)), qr/^==> waiting for the Git server: Git LFS/m,
	    'a server that is away may come back');
	for my $status (429, 500) {
		$forge->clear_faults;
		$forge->fault(qr{info/lfs/objects/batch}, kind => 'status', status => $status,
		    type => 'text/plain', body => 'later');
		like(job_log(deploy($site, git_patience => 100)),
		    qr/^==> waiting for the Git server: Git LFS/m, "so may one that returns $status");
	}
	$forge->clear_faults;
	$forge->fault(qr{info/lfs/objects/batch}, kind => 'status', status => 503, type => 'text/html',
	    body => 'away');
	$bad = deploy($site, after($job));
	fails($bad, qr/^Git LFS could not fetch third\.bin.*HTTP 503/, 'a server that is away');
	unlike(job_log($bad), qr/creating a new clone/, 'the clone stays');
	$forge->clear_faults;
	$forge->fault(qr{info/lfs/objects/batch}, kind => 'silent');
	$bad = deploy($site, after($bad), checkout_timeout => 3);
	is(join(' ', job_end($bad)), 'failed timeout git timed out.', 'a silent server');
	$forge->clear_faults;
	$job = deploy($site, after($bad));
	ends($job, 'success -', 'later, the checkout succeeds');
	is(downloads(), 1, 'and downloads what is new');
}

# --- the repository says where
{
	my $evil = repo('team/evil');
	my $there = $other->url . '/team/evil.git/info/lfs';
	my $config = "[lfs]\n\turl = $there\n\tpushurl = $there\n\tstandalonetransferagent = evil\n"
		. "[lfs \"customtransfer.evil\"]\n\tpath = touch\n\targs = ran\n"
		. "[lfs \"extension.evil\"]\n\tclean = touch ran\n\tsmudge = touch ran\n"
		. "[remote \"origin\"]\n\turl = $there\n\tlfsurl = $there\n"
		. "[filter \"evil\"]\n\tsmudge = touch ran\n[url \"$there\"]\n\tinsteadOf = https://\n";
	for my $more ('', "[lfs]\n\tfetchexclude = *\n\tskipdownloaderrors = true\n") {
		$evil->commit('main', { '.gitattributes' => "$attributes*.txt filter=evil\n",
			'f.txt' => "text\n", '.lfsconfig' => "$config$more",
			'a.bin' => $evil->lfs("mine\n") }, 'evil');
		my $bad = deploy($evil, steps => [ 'cat a.bin', $hunt ]);
		ends($bad, 'success -', 'a repository with a hostile .lfsconfig is checked out');
		like(job_log($bad), qr/^mine$/m, 'with the objects of its own server');
		unlike(job_log($bad), qr/FOUND/, 'and nothing is left');
		is(scalar $other->requests, 0, 'the server that .lfsconfig names gets no request');
		ok(!-e "$bad->{workspace}/ran", 'nothing that it names is run');
	}
	my $long = "version https://git-lfs.github.com/spec/v1\next-0-evil sha256:" . 'ab' x 32
	    . "\noid sha256:" . sha256_hex("mine\n") . "\nsize 5\n";
	$evil->commit('main', { 'a.bin' => $long }, 'extension');
	fails(deploy($evil), qr/^Git LFS could not fetch a\.bin: .*extension 'evil'/, 'an extension');
}

# --- objects at another host
{
	my $far = repo('team/far');
	$far->commit('main', { '.gitattributes' => $attributes, 'a.bin' => $far->lfs("far away\n") }, 'far');
	$forge->lfs_at($other->url . '/bucket');
	$other->fault(qr{^/bucket}, kind => 'status', status => 200, body => "far away\n");
	ends(my $got = deploy($far), 'success -', 'objects can be at another host');
	like(job_log($got), qr/^far away$/m, 'they are fetched from there');
	is(scalar $other->requests(qr{^/bucket}), 1, 'which gets a request');
	is($other->passwords, '', 'without a credential');
	$other->clear_faults;
	$other->fault(qr{^/bucket}, kind => 'status', status => 401, body => '{}',
	    headers => { 'WWW-Authenticate' => 'Basic realm="give"' });
	fails(deploy($far), qr/^Git LFS could not fetch a\.bin/, 'another host that asks for a password');
	is($other->passwords, '', 'it gets none');
	my $plain = Slipway::Forge->start(type => 'gitea', plain => 1);
	$plain->fault(qr{^/bucket}, kind => 'status', status => 200, body => "far away\n");
	$forge->lfs_at($plain->url . '/bucket');
	fails(deploy($far), qr/^Git LFS could not fetch a\.bin.*(?:tls|TLS|HTTPS)/, 'an address without TLS');
	is(scalar $plain->requests, 0, 'nothing is sent there');
	ends(deploy($far, allow_http => 1), 'success -', 'it is used where http is allowed');
	$plain->stop;
	$forge->lfs_at(undef);
	$other->clear_faults;
	for my $path (qr{/objects/batch$}, qr{/objects/[0-9a-f]{64}$}) {
		$forge->fault($path, kind => 'status', status => 307, body => '',
		    headers => { Location => $other->url . '/bucket/x' });
		deploy($far);
		ok(scalar $other->requests, "a redirect of $path is followed");
		is($other->passwords, '', 'without a credential');
		$forge->clear_faults;
	}
}

# --- without git-lfs, and without the wish
{
	my $bin = tempdir() . '/bin';
	mkdir $bin;
	for my $dir ('/usr/bin', '/bin') {
		for my $program (qw(git sh cat grep ls env sed wc rm touch head git-upload-pack)) {
			symlink "$dir/$program", "$bin/$program" if -x "$dir/$program" && !-l "$bin/$program";
		}
	}
	chmod 0755, $bin;
	my $without = deploy($site, path => $bin);
	fails($without, qr/git-lfs is not installed.*install the package git-lfs/,
	    'a runner without git-lfs');
	like(job_log($without), qr/^==> warning: files of Git LFS are not fetched/m,
	    'the log names the files');
	my $with = deploy($site, after($without));
	ends($with, 'success -', 'when it is installed, the next job succeeds');
	like(job_log($with), qr/^second$/m, 'with content in place of the pointers');
	ok(slurp("$with->{workspace}/big.bin") eq $big, 'in all files');
	my $untracked = repo('team/untracked');
	$untracked->commit('main', { 'a.bin' => $untracked->lfs("x\n") }, 'without attributes');
	$without = deploy($untracked, path => $bin);
	ends($without, 'success -', 'a pointer without .gitattributes needs no git-lfs');
	like(job_log($without), qr/^==> warning: files of Git LFS are not fetched.*: a\.bin$/m,
	    'and is named');

	my $off = deploy($site, after($with), lfs => 0);
	ends($off, 'success -', 'without lfs, the checkout succeeds');
	like(job_log($off), qr/^==> warning: files of Git LFS are not fetched.* \(5\): a\.bin/m,
	    'the pointers are named');
	like(slurp("$off->{workspace}/big.bin"), qr/^version /, 'a pointer is in place of the content');
	is(scalar $forge->requests(qr{info/lfs}), 0, 'and nothing is fetched');
	my $on = deploy($site, after($off));
	ok(slurp("$on->{workspace}/big.bin") eq $big, 'with lfs, the content is there again');
	$on = deploy($site, after($on), checkout => 'keep');
	unlike(job_log($on), qr/warning/, 'nothing is missing');
}

# --- submodules
{
	my $theme = repo('team/theme');
	my $tip = $theme->commit('main', { '.gitattributes' => $attributes,
		'logo.bin' => $theme->lfs("logo\n") }, 'theme');
	my $super = repo('team/super');
	$super->commit('main', { '.gitattributes' => $attributes, 'a.bin' => $super->lfs("top\n"),
		'.gitmodules' => "[submodule \"theme\"]\n\tpath = theme\n\turl = ../theme.git\n" }, 'files');
	$super->git('update-index', '--add', '--cacheinfo', "160000,$tip,theme");
	$super->commit('main', {}, 'theme');
	my @steps = (steps => ['cat a.bin theme/logo.bin']);
	my $got = deploy($super, submodules => 1, @steps);
	ends($got, 'success -', 'a submodule with files of Git LFS is checked out');
	like(job_log($got), qr/^top\nlogo$/m, 'with their content');
	$got = deploy($super, after($got), submodules => 1, @steps);
	like(job_log($got), qr/^top\nlogo$/m, 'and again');
	$got = deploy($super, after($got), submodules => 1, lfs => 0, @steps);
	like(job_log($got), qr/^==> warning: files of Git LFS in submodules.* \(1\): theme\/logo\.bin$/m,
	    'a pointer in a submodule is named');
	fails(deploy($super, after($got), submodules => 2, @steps), qr/Username|theme/,
	    'a private submodule without the credential');
	$got = deploy($super, submodules => 2, lent => $theme->clone_url, @steps);
	ends($got, 'success -', 'one for which it is lent is checked out');
	like(job_log($got), qr/^top\nlogo$/m, 'with the files of Git LFS');
	$theme->private(0);
	$got = deploy($super, submodules => 2, @steps);
	ends($got, 'success -', 'a public submodule needs no credential');
	is($forge->passwords(qr{/theme}), '', 'and its files are fetched without one');
	$theme->private(1);
}

# --- a local repository
{
	fails(deploy($site, repository => $site->dir, credential => undef, allow_local => 1),
	    qr/^Git LFS does not fetch the files of a local repository/, 'a local repository');
}

# --- over ssh
SKIP: {
	my $sshd = Slipway::Sshd->start or skip 'the shell of this account permits no login', 4;
	my $dir = tempdir();
	run_cmd('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', "$dir/user");
	my $header = encode_base64("any:$token", '');
	my $href = $site->clone_url . '/info/lfs';
	spew("$dir/serve", <<"END", 0755);
#!/bin/sh
echo "\$SSH_ORIGINAL_COMMAND" >>$dir/commands
case \$SSH_ORIGINAL_COMMAND in
git-upload-pack*super*) exec git-upload-pack $dir/super ;;
git-upload-pack*) exec git-upload-pack ${\$site->dir} ;;
git-lfs-authenticate*) echo '{ "href": "$href", "header": { "Authorization": "Basic $header" } }' ;;
*) exit 1 ;;
esac
END
	$sshd->authorize("command=\"$dir/serve\" " . slurp("$dir/user.pub") =~ s/\n//r);
	my %named = is_root() ? (limits => ['-N']) : ();
	my $at = $sshd->url('/team/site.git');
	my @ssh = (repository => $at, credential => undef, ssh_key => slurp("$dir/user"), %named);
	my $got = deploy($site, @ssh, known_hosts => $sshd->known);
	ends($got, 'success -', 'over ssh, files of Git LFS are fetched');
	ok(slurp("$got->{workspace}/big.bin") eq $big, 'with their content');
	like(slurp("$dir/commands"), qr/^git-lfs-authenticate \S*team\/site\.git download$/m,
	    'the server was asked for the address');
	unlike(job_log($got), qr/PRIVATE KEY/, 'the log has no key');

	# git-lfs reads a line of the configuration for each line of an address
	spew("$dir/run", "#!/bin/sh\ntouch $dir/ran\n", 0755);
	chmod 0777, $dir;
	my $lines = "$at\\nlfs.standalonetransferagent=evil\\nlfs.customtransfer.evil.path=$dir/run";
	make_repo("$dir/super", "printf '%s' '[submodule \"s\"]\n\tpath = s\n\turl = \"$lines\"\n'"
	    . ' >.gitmodules; mkdir s; git update-index --add --cacheinfo 160000,'
	    . $site->tip('main') . ',s');
	ends(deploy($site, @ssh, known_hosts => $sshd->known, repository => $sshd->url('/super.git'),
	    submodules => 1), 'failed checkout_failed',
	    'an address with a line of configuration is rejected');
	like(slurp("$dir/commands"), qr/standalonetransferagent/, 'git itself accepts it');
	ok(!-e "$dir/ran", 'git-lfs does not run what it names');
}
is_deeply([$forge->complaints], [], 'every request was well-formed');
done_testing;
