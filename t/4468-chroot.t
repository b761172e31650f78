#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# In a chroot whose root directory is not a mount point, as package builders use, and in
# one that is: jobs have private mounts, so an account has a name and a /tmp of its own,
# no mount of a job reaches the host, and git gets the credential of a checkout.

use strict;
use warnings;
use Slipway::DB;
use Slipway::Forge;
use Slipway::Runner;
use Slipway::Test;
use Test::More;

plan skip_all => 'needs root' if !is_root();
plan skip_all => 'the chroot has a /tmp of its own' if "@{[srcdir(), builddir()]}" =~ m{(?:^| )/tmp/};
plan skip_all => 'the root directory is no mount point, so that the other tests are such a test'
    if !$ENV{SLIPWAY_IN_CHROOT} && (run_cmd(qw(unshare --mount --propagation private true)))[0] != 0;

# Makes a root directory of the machine's folders, and continues this test there.
if (!$ENV{SLIPWAY_IN_CHROOT}) {
	my @perl = ($^X, '-I' . srcdir() . '/t/lib', srcdir() . '/t/4468-chroot.t');
	for my $kind (qw(plain mount)) {
		my $root = tempdir() . "/$kind";
		my ($status, $out, $err) = run_cmd('unshare', '--mount', '--propagation', 'private',
		    'bash', '-ec', <<'ENTER', 'bash', $root, $kind, @perl);
root=$1 kind=$2
shift 2
mkdir "$root"
test "$kind" = plain || mount --bind "$root" "$root"
for d in /*; do
	case $d in
	/proc | /lost+found) ;;
	/tmp) mkdir -m 1777 "$root/tmp" ;;
	*) if test -L "$d"; then cp -a "$d" "$root"; elif test -d "$d"; then
		mkdir "$root$d"
		mount --rbind "$d" "$root$d"
	fi ;;
	esac
done
mkdir "$root/proc"
mount -t proc proc "$root/proc"
# as on a host, where mounts are shared: none may come back
mount --make-rshared / 2>/dev/null || :
cd "$OLDPWD" 2>/dev/null || :
SLIPWAY_IN_CHROOT=$kind TMPDIR=/tmp chroot "$root" sh -c 'cd "$0" && shift 0 && exec "$@"' "$PWD" "$@"
status=$?
grep -c "$root/proc/fs\|$root/tmp\|$root/etc/passwd" /proc/self/mountinfo && exit 9
exit $status
ENTER
		is($status, 0, "a runner works in a chroot ($kind)") or diag($out, $err);
		note($out);
	}
	done_testing();
	exit;
}

my $forge = Slipway::Forge->start(type => 'gitea');
$forge->user('robot', { id => 9 });
my $db = Slipway::DB->start;
$db->migrate;
my $runner = Slipway::Runner->start(db => $db, conf => $forge->conf(report => 'no', allow_local => 'yes',
    token => $forge->token('robot')));
my $repo = $forge->repo('team/site', private => 1, users => ['robot']);
$repo->commit('main', { file => "text\n" }, 'first');
my $id = $runner->deploy($runner->project(repo => $repo->clone_url),
    'cat file; id -un; echo x >/tmp/mine; ls /tmp');
is($runner->wait($id), 'success', 'a private repository is deployed') or diag($runner->said);
my $log = $runner->log($id);
like($log, qr/^text$/m, 'its file is there');
like($log, qr/^slipway-\d+$/m, 'the account has a name') or diag($runner->said);
like($log, qr/^slipway-\d+\nmine\n/m, 'the job has a /tmp of its own');
unlike($log, qr/not isolated|without a user name/, 'nothing is missing');
ok(!-e '/tmp/mine', 'the /tmp outside of the job is another one');
is($runner->stop, 0, 'the runner stops');
done_testing();
