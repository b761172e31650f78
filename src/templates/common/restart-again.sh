# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Restarts the service after the previous files were restored.

restart_again() { # text for RELOAD_TRIGGER
	if [ -n "${RELOAD_TRIGGER:-}" ]; then
		! is_trigger || printf '%s\n' "$1" >"$RELOAD_TRIGGER"
	elif [[ ${SERVICE:-} =~ ^[A-Za-z0-9][A-Za-z0-9@:._-]*$ ]]; then
		systemctl --no-ask-password reload-or-restart -- "$SERVICE"
	fi
}
