# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: restores the previous file, if this deployment
# replaced it.
set -euo pipefail
umask 022

die() { printf '%s\n' "$*" >&2; exit 1; }
# A trigger file contains one short line; no other file is overwritten.
is_trigger() {
	[[ $RELOAD_TRIGGER == /* ]] || return 1
	[ -e "$RELOAD_TRIGGER" ] || return 0
	[ -f "$RELOAD_TRIGGER" ] && text=$(head -c 64 -- "$RELOAD_TRIGGER") &&
		[[ $text =~ ^[a-z0-9[:blank:]-]{0,30}$ ]]
}

[[ ${TARGET:?set TARGET, for example /srv/app/bin/app} =~ ^/[^/]+/.*[^/]$ && $TARGET != *..* ]] ||
	die "TARGET must be an absolute path such as /srv/app/bin/app"
[ "${DRY_RUN:-no}" != yes ] || exit 0
rm -f -- "$TARGET.new"
if [ "$(cat -- "$TARGET.deployment" 2>/dev/null)" != "${SLIPWAY_DEPLOYMENT_ID:?}" ]; then
	echo "nothing was installed"
	exit 0
fi
if [ ! -e "$TARGET.previous" ]; then
	echo "no previous file: keeping the new one"
	exit 0
fi
mv -T -- "$TARGET.previous" "$TARGET"
rm -f -- "$TARGET.deployment"
echo "restored $TARGET"
if [ -n "${RELOAD_TRIGGER:-}" ]; then
	! is_trigger || printf '%s\n' "${SLIPWAY_DEPLOYMENT_ID:?}" >"$RELOAD_TRIGGER"
elif [[ ${SERVICE:-} =~ ^[A-Za-z0-9][A-Za-z0-9@:._-]*$ ]]; then
	systemctl --no-ask-password reload-or-restart -- "$SERVICE"
fi
