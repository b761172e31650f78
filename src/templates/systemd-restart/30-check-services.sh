# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Waits until each is active.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

command -v systemctl >/dev/null || die "systemctl is not on the runner: this template needs systemd"
IFS=, read -r -a services <<<"${SERVICES:?choose one service at least}"
for service in "${services[@]}"; do
	[[ $service =~ ^[A-Za-z0-9][A-Za-z0-9@:._-]*$ ]] || die "$service is no name of a service"
done
seconds=${CHECK_SECONDS:-60}
[[ $seconds =~ ^[1-9][0-9]{0,3}$ ]] || die "CHECK_SECONDS must be 1..9999"
for service in "${services[@]}"; do
	until systemctl is-active --quiet -- "$service"; do
		[ "$SECONDS" -lt "$seconds" ] || die "$service is not active"
		sleep 1
	done
	echo "$service is active"
done
