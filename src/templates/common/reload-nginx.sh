# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Makes nginx load its configuration.

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
