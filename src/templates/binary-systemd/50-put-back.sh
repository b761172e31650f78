# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: restores the previous file, if this deployment
# replaced it.
set -euo pipefail
umask 022

. ../common/die.sh
. ../common/is-trigger.sh
. ../common/restart-again.sh

. ../common/target.sh
[ "${DRY_RUN:-no}" != yes ] || exit 0
rm -f -- "$TARGET.new" "$TARGET.former"
if [ "$(cat -- "$TARGET.deployment" 2>/dev/null)" != "${SLIPWAY_DEPLOYMENT_ID:?}" ]; then
	echo "nothing was installed"
	exit 0
fi
if [ ! -e "$TARGET.previous" ]; then
	echo "no previous file: keeping the new one"
	exit 0
fi
mv -T -- "$TARGET.previous" "$TARGET"
[ ! -e "$TARGET.before" ] || mv -T -- "$TARGET.before" "$TARGET.previous"
rm -f -- "$TARGET.deployment"
echo "restored $TARGET"
restart_again "${SLIPWAY_DEPLOYMENT_ID:?}"
