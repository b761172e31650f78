# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that every host is known, reachable and has rsync before anything
# changes.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/ssh.sh
need rsync rsync
[ -r "$SSH_KEY_FILE" ] || die "$SSH_KEY_FILE cannot be read by $(id -un)"
[ -r "$KNOWN_HOSTS" ] || die "$KNOWN_HOSTS cannot be read: ssh-keyscan prints its lines"
for host in "${hosts[@]}"; do
	"${ssh[@]}" -- "$host" 'command -v rsync >/dev/null' ||
		die "$host: unreachable, unknown, or without rsync"
	echo "$host: ready"
done
