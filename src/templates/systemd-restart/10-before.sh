# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Shows the state of the services; fails if systemd does not know one.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

command -v systemctl >/dev/null || die "systemctl is not installed on the runner: this template needs systemd"
IFS=, read -r -a services <<<"${SERVICES:?choose at least one service}"
for service in "${services[@]}"; do
	[[ $service =~ ^[A-Za-z0-9][A-Za-z0-9@:._-]*$ ]] || die "$service is not a valid service name"
done
for service in "${services[@]}"; do
	state=$(systemctl show --property=LoadState --value -- "$service")
	[ "$state" = loaded ] || die "$service: $state"
	printf '%s: %s\n' "$service" "$(systemctl is-active -- "$service" || true)"
done
