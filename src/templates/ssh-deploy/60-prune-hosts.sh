# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Removes the oldest releases beyond KEEP_RELEASES; never current or previous.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/ssh.sh
keep=${KEEP_RELEASES:-5}
[[ $keep =~ ^[1-9][0-9]{0,2}$ ]] || die "KEEP_RELEASES must be 1..999"
[ "${DRY_RUN:-no}" != yes ] || exit 0
for host in "${hosts[@]}"; do
	"${ssh[@]}" -- "$host" bash -s -- "$REMOTE_DIR" "$keep" <<'REMOTE'
set -euo pipefail
. ../common/old-releases.sh
keep=$2
cd -- "$1"
old_releases | while read -r old; do remove_release "$old"; done
remove_rest
REMOTE
done
