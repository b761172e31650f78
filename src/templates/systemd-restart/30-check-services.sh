# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Waits until each service is active.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

command -v systemctl >/dev/null || die "systemctl is not installed on the runner: this template needs systemd"
IFS=, read -r -a services <<<"${SERVICES:?choose at least one service}"
for service in "${services[@]}"; do
	[[ $service =~ ^[A-Za-z0-9][A-Za-z0-9@:._-]*$ ]] || die "$service is not a valid service name"
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
