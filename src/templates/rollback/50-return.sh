# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: switches back, if this deployment switched.
set -euo pipefail

# A trigger file contains one short line; no other file is overwritten.
is_trigger() {
	[[ $RELOAD_TRIGGER == /* ]] || return 1
	[ -e "$RELOAD_TRIGGER" ] || return 0
	[ -f "$RELOAD_TRIGGER" ] && text=$(head -c 64 -- "$RELOAD_TRIGGER") &&
		[[ $text =~ ^[a-z0-9[:blank:]-]{0,30}$ ]]
}

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
	! is_trigger || printf '%s\n' "${SLIPWAY_DEPLOYMENT_ID:?}" >"$RELOAD_TRIGGER"
elif [[ ${SERVICE:-} =~ ^[A-Za-z0-9][A-Za-z0-9@:._-]*$ ]]; then
	systemctl --no-ask-password reload-or-restart -- "$SERVICE"
fi
