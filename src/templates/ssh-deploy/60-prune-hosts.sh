# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Removes the oldest releases beyond KEEP_RELEASES; never current or previous.
# The new release is live and stays so, whatever cannot be removed.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/list.sh
. ../common/ssh.sh
keep=${KEEP_RELEASES:-5}
[[ $keep =~ ^[1-9][0-9]{0,2}$ ]] || die "KEEP_RELEASES must be 1..999"
[ "${DRY_RUN:-no}" != yes ] || exit 0
all=yes
for host in "${hosts[@]}"; do
	"${ssh[@]}" -- "$host" bash -s -- "$REMOTE_DIR" "$keep" <<'REMOTE' ||
set -euo pipefail
. ../common/old-releases.sh
keep=$2
cd -- "$1"
remove_rest
for old in $(old_releases); do
	remove_release "$old"
done
[ "$failed" = no ]
REMOTE
		{
			echo "$host: not everything could be removed" >&2
			all=no
		}
done
[ "$all" = yes ]
