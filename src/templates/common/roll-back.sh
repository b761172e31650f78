# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: restores the previous release, if this one was
# current, and removes this one.  Restarts the service in the same way as the
# restart step.
set -euo pipefail

# A trigger file contains one short line; no other file is overwritten.
is_trigger() {
	[[ $RELOAD_TRIGGER == /* ]] || return 1
	[ -e "$RELOAD_TRIGGER" ] || return 0
	[ -f "$RELOAD_TRIGGER" ] && text=$(head -c 64 -- "$RELOAD_TRIGGER") &&
		[[ $text =~ ^[a-z0-9[:blank:]-]{0,30}$ ]]
}

id=${SLIPWAY_DEPLOYMENT_ID:?}
[[ $id =~ ^[0-9]+$ ]] || exit 1
[ "${DRY_RUN:-no}" != yes ] || exit 0
cd -- "${DEPLOY_ROOT:?}"
rm -f -- current.new previous.new
if [ "$(readlink -- current || true)" != "releases/$id" ]; then
	echo "this release was not current: current is unchanged"
elif [ -L previous ] && [ -d previous ]; then
	mv -T -- previous current
	echo "back to $(readlink -- current)"
	if [ -n "${RELOAD_TRIGGER:-}" ]; then
		! is_trigger || printf '%s\n' "back from $id" >"$RELOAD_TRIGGER"
	elif [[ ${SERVICE:-} =~ ^[A-Za-z0-9][A-Za-z0-9@:._-]*$ ]]; then
		systemctl --no-ask-password reload-or-restart -- "$SERVICE"
	fi
else
	echo "no previous release: keeping the failed one for inspection"
	exit 0
fi
rm -rf -- "releases/$id"
