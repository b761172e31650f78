# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that every host is known, reachable and has rsync before anything
# changes.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/list.sh
. ../common/ssh.sh
need rsync rsync
[[ ${KEEP_RELEASES:-5} =~ ^[1-9][0-9]{0,2}$ ]] || die "KEEP_RELEASES must be 1..999"
. ../common/ssh-files.sh
for host in "${hosts[@]}"; do
	"${ssh[@]}" -- "$host" 'command -v rsync >/dev/null' ||
		die "$host: unreachable, unknown, or without rsync"
	echo "$host: ready"
done
