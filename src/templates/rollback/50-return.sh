# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: switches back, if this deployment switched.
set -euo pipefail

. ../common/is-trigger.sh
. ../common/restart-again.sh

[ "${DRY_RUN:-no}" != yes ] || exit 0
cd -- "${DEPLOY_ROOT:?}"
rm -f -- current.new previous.new
read -r id before <.rollback 2>/dev/null || { echo "nothing was switched"; exit 0; }
if [ "$id" != "${SLIPWAY_DEPLOYMENT_ID:?}" ]; then
	echo "nothing was switched"
	exit 0
fi
mv -T -- previous current
[ "$before" = - ] || ln -s -- "$before" previous
rm -f -- .rollback
echo "back to $(readlink -- current)"
restart_again "${SLIPWAY_DEPLOYMENT_ID:?}"
