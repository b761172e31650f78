# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Switches host after host to the same release, each in one rename, and runs
# REMOTE_SCRIPT there.  Nothing is switched unless every host has the release.
#
# PHP-FPM caches scripts by their path, and a link hides that the files behind
# it have changed.  Let nginx pass $realpath_root instead of $document_root, so
# that the path of a script contains its release, and reload PHP-FPM after the
# switch, for example in REMOTE_SCRIPT.
# slipway-templates(7) explains both.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/list.sh
. ../common/ssh.sh
. ../common/remote-script.sh
if [ -n "${RELEASE:-}" ]; then
	[[ $RELEASE =~ ^[0-9]+$ ]] || die "RELEASE must be a number"
	to=releases/$RELEASE
else
	to=$("${ssh[@]}" -- "${hosts[0]}" "readlink -- '$REMOTE_DIR/previous'") ||
		die "${hosts[0]} has no previous release: set RELEASE"
	[[ $to =~ ^releases/[0-9]+$ ]] || die "${hosts[0]}: previous is $to"
fi
for host in "${hosts[@]}"; do
	"${ssh[@]}" -- "$host" "test -d '$REMOTE_DIR/$to'" ||
		die "$host: $REMOTE_DIR/$to does not exist"
	"${ssh[@]}" -- "$host" "test ! '$REMOTE_DIR/$to' -ef '$REMOTE_DIR/current'" ||
		die "$host: $to is already the current release"
done
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: current would become $to"
	exit 0
fi
for host in "${hosts[@]}"; do
	"${ssh[@]}" -- "$host" bash -s -- "$REMOTE_DIR" "$id" "$to" "$script" <<'REMOTE'
set -euo pipefail
cd -- "$1"
rm -f -- current.new previous.new
# what the step Return restores
printf '%s %s %s\n' "$2" "$(readlink -- current)" "$(readlink -- previous || echo -)" >.rollback
ln -s -- "$(readlink -- current)" previous.new
mv -T -- previous.new previous
ln -s -- "$3" current.new
mv -T -- current.new current
script=${4:-}
. ../common/run-script.sh
REMOTE
	echo "$host: current -> $to"
done
