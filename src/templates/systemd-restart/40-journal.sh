# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Shows the last log lines of each service; without the group systemd-journal,
# there may be none.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

command -v systemctl >/dev/null || die "systemctl is not installed on the runner: this template needs systemd"
IFS=, read -r -a services <<<"${SERVICES:?choose at least one service}"
for service in "${services[@]}"; do
	[[ $service =~ ^[A-Za-z0-9][A-Za-z0-9@:._-]*$ ]] || die "$service is not a valid service name"
done
for service in "${services[@]}"; do
	systemctl status --no-pager --lines=20 -- "$service" || true
done
