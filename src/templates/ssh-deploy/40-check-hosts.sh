# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that the release is current on all hosts.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/ssh.sh
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to check"
	exit 0
fi
for host in "${hosts[@]}"; do
	now=$("${ssh[@]}" -- "$host" "readlink -- '$REMOTE_DIR/current'")
	[ "$now" = "releases/$id" ] || die "$host: current is $now"
	echo "$host: $now"
done
