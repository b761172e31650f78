# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that the release is current on all hosts.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/list.sh
. ../common/ssh.sh
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to check"
	exit 0
fi
for host in "${hosts[@]}"; do
	now=$("${ssh[@]}" -- "$host" bash -s -- "$REMOTE_DIR" "$id" <<'REMOTE'
cd -- "$1" && readlink -- current && [ current -ef "releases/$2" ]
REMOTE
	) || die "$host: current is ${now:-missing}"
	echo "$host: $now"
done
