# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: switches the changed hosts back.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/list.sh
. ../common/ssh.sh
[ "${DRY_RUN:-no}" != yes ] || exit 0
failed=no
for host in "${hosts[@]}"; do
	if ! grep -qsxF -- "$host" "$HOME/.slipway-hosts"; then
		echo "$host: this deployment made no release there: nothing to undo"
		continue
	fi
	if "${ssh[@]}" -- "$host" bash -s -- "$REMOTE_DIR" "$id" <<'REMOTE'
set -euo pipefail
. ../common/switch-link.sh
cd -- "$1"
rm -f -- current.new previous.new
if ! switch_back "$2" && [ "$(readlink -- current || true)" = "releases/$2" ]; then
	echo "no previous release: keeping the new one"
	exit 0
fi
rm -rf -- "releases/$2"
rm -f -- "releases/.$2"
REMOTE
	then
		echo "$host: rolled back"
	else
		echo "$host: could not be rolled back" >&2
		failed=yes
	fi
done
[ "$failed" = no ]
