# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: restores the previous file and reloads.
set -euo pipefail
umask 022

die() { printf '%s\n' "$*" >&2; exit 1; }

[[ ${VHOST:?choose a file} =~ ^[A-Za-z0-9_-][A-Za-z0-9._-]*$ ]] || die "VHOST must be a file name"
[[ ${VHOST_DIR:?} =~ ^/[^/]+/[^/]+ && $VHOST_DIR != *..* ]] || die "VHOST_DIR must be an absolute path"
# A trigger file contains one short line; no other file is overwritten.
is_trigger() {
	[[ $RELOAD_TRIGGER == /* ]] || return 1
	[ -e "$RELOAD_TRIGGER" ] || return 0
	[ -f "$RELOAD_TRIGGER" ] && text=$(head -c 64 -- "$RELOAD_TRIGGER") &&
		[[ $text =~ ^[a-z0-9[:blank:]-]{0,30}$ ]]
}
reload() { # id
	if [ -n "${RELOAD_TRIGGER:-}" ]; then
		is_trigger || die "$RELOAD_TRIGGER is not a trigger file: choose another file"
		printf '%s\n' "$1" >"$RELOAD_TRIGGER"
		until [ "$(cut -d ' ' -f 1 -- "${RELOAD_RESULT:?}" 2>/dev/null)" = "$1" ]; do
			[ "$SECONDS" -lt 30 ] || { echo "no result in $RELOAD_RESULT" >&2; return 1; }
			sleep 0.2
		done
		cat -- "${RELOAD_RESULT%/*}/log" 2>/dev/null || true
		grep -qx "$1 ok" -- "$RELOAD_RESULT"
	else
		nginx -t -q -c "${NGINX_CONF:?set NGINX_CONF or RELOAD_TRIGGER}" &&
			nginx -s reload -c "$NGINX_CONF"
	fi
}
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
