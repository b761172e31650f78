# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Protects other files from being overwritten by RELOAD_TRIGGER.

# A trigger file contains one short line; no other file is overwritten.
is_trigger() {
	[[ $RELOAD_TRIGGER == /* ]] || return 1
	[ -e "$RELOAD_TRIGGER" ] || return 0
	[ -f "$RELOAD_TRIGGER" ] && text=$(head -c 64 -- "$RELOAD_TRIGGER") &&
		[[ $text =~ ^[a-z0-9[:blank:]-]{0,30}$ ]]
}
