# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that every host is known and reachable, and lists its releases.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/ssh.sh
[ -r "$SSH_KEY_FILE" ] || die "$SSH_KEY_FILE cannot be read by $(id -un)"
[ -r "$KNOWN_HOSTS" ] || die "$KNOWN_HOSTS cannot be read: ssh-keyscan prints its lines"
for host in "${hosts[@]}"; do
	echo "$host:"
	"${ssh[@]}" -- "$host" bash -s -- "$REMOTE_DIR" <<'REMOTE' ||
set -euo pipefail
cd -- "$1"
[ -L current ] || { echo "$1 has no release: current is missing" >&2; exit 1; }
ls -ltd -- releases/*/
echo "current:  $(readlink -- current)"
echo "previous: $(readlink -- previous || echo none)"
REMOTE
		die "$host: unreachable, unknown, or without a release in $REMOTE_DIR"
done
