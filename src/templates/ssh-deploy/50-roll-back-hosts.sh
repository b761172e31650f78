# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: switches the changed hosts back.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/ssh.sh
[ "${DRY_RUN:-no}" != yes ] || exit 0
failed=no
for host in "${hosts[@]}"; do
	if "${ssh[@]}" -- "$host" bash -s -- "$REMOTE_DIR" "$id" <<'REMOTE'
set -euo pipefail
cd -- "$1"
if [ "$(readlink -- current || true)" = "releases/$2" ]; then
	[ -d previous ] || { echo "no previous release: keeping the new one"; exit 0; }
	mv -T -- previous current
fi
rm -rf -- "releases/$2"
REMOTE
	then
		echo "$host: rolled back"
	else
		echo "$host: could not be rolled back" >&2
		failed=yes
	fi
done
[ "$failed" = no ]
