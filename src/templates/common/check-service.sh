# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2154
# Waits until SERVICE is active.

if [ -n "${SERVICE:-}" ] && command -v systemctl >/dev/null; then
	until systemctl is-active --quiet -- "$SERVICE"; do
		[ "$SECONDS" -lt "$seconds" ] || die "$SERVICE is not active"
		sleep 1
	done
	echo "$SERVICE is active"
fi
