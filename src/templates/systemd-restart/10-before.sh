# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# How the services are now; one that systemd does not know stops it here.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

command -v systemctl >/dev/null || die "systemctl is not on the runner: this template needs systemd"
IFS=, read -r -a services <<<"${SERVICES:?choose one service at least}"
for service in "${services[@]}"; do
	[[ $service =~ ^[A-Za-z0-9][A-Za-z0-9@:._-]*$ ]] || die "$service is no name of a service"
done
for service in "${services[@]}"; do
	state=$(systemctl show --property=LoadState --value -- "$service")
	[ "$state" = loaded ] || die "$service: $state"
	printf '%s: %s\n' "$service" "$(systemctl is-active -- "$service" || true)"
done
