# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: returns the hosts that were switched to the
# release that was current before, and runs REMOTE_SCRIPT there.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/list.sh
. ../common/ssh.sh
. ../common/remote-script.sh
[ "${DRY_RUN:-no}" != yes ] || exit 0
failed=no
for host in "${hosts[@]}"; do
	if "${ssh[@]}" -- "$host" bash -s -- "$REMOTE_DIR" "$id" "$script" <<'REMOTE'
set -euo pipefail
cd -- "$1"
rm -f -- current.new previous.new
read -r by current previous <.rollback 2>/dev/null || by=
[ "$by" = "$2" ] || { echo "nothing was switched"; exit 0; }
ln -s -- "$current" current.new
mv -T -- current.new current
rm -f -- previous
[ "$previous" = - ] || ln -s -- "$previous" previous
rm -f -- .rollback
echo "back to $(readlink -- current)"
script=${3:-}
. ../common/run-script.sh
REMOTE
	then
		echo "$host: returned"
	else
		echo "$host: could not be returned" >&2
		failed=yes
	fi
done
[ "$failed" = no ]
