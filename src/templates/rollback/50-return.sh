# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs when a step above failed: back to where it was before, if it was switched.
set -euo pipefail

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
if [ -n "${RELOAD_TRIGGER:-}" ]; then
	printf '%s\n' "${SLIPWAY_DEPLOYMENT_ID:?}" >"$RELOAD_TRIGGER"
elif [ -n "${SERVICE:-}" ]; then
	systemctl --no-ask-password reload-or-restart -- "$SERVICE"
fi
