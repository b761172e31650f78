# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: restores the previous file and reloads.
set -euo pipefail
umask 022

. ../common/die.sh

. ../common/vhost.sh
. ../common/is-trigger.sh
. ../common/reload-nginx.sh
[ "${DRY_RUN:-no}" != yes ] || exit 0
target=$VHOST_DIR/$VHOST
if [ "$(cat -- "$target.deployment" 2>/dev/null)" != "${SLIPWAY_DEPLOYMENT_ID:?}" ]; then
	echo "nothing was installed"
	exit 0
fi
rm -f -- "$target.new" "$target.deployment"
if [ -e "$target.previous" ]; then
	mv -T -- "$target.previous" "$target"
	echo "restored $target"
else
	rm -f -- "$target"
	echo "removed $target, which was new"
fi
reload "$SLIPWAY_DEPLOYMENT_ID-back"
