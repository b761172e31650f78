# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that this deployment has switched all hosts, and to the same release.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/list.sh
. ../common/ssh.sh
. ../common/check-seconds.sh
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to check"
	exit 0
fi
to=
for host in "${hosts[@]}"; do
	now=$("${ssh[@]}" -- "$host" "readlink -- '$REMOTE_DIR/current'")
	[ "${to:=$now}" = "$now" ] || die "$host: current is $now, not $to"
	echo "$host: $now"
done
[ -z "${RELEASE:-}" ] || [ "$to" = "releases/$RELEASE" ] || die "current is $to"
. ../common/check-url.sh
for host in "${hosts[@]}"; do
	"${ssh[@]}" -- "$host" "rm -f -- '$REMOTE_DIR/.rollback'" ||
		echo "$host: .rollback stays; it does no harm"
done
