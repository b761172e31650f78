# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# The last lines of each; without the group systemd-journal there may be none.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

command -v systemctl >/dev/null || die "systemctl is not on the runner: this template needs systemd"
IFS=, read -r -a services <<<"${SERVICES:?choose one service at least}"
for service in "${services[@]}"; do
	[[ $service =~ ^[A-Za-z0-9][A-Za-z0-9@:._-]*$ ]] || die "$service is no name of a service"
done
for service in "${services[@]}"; do
	systemctl status --no-pager --lines=20 -- "$service" || true
done
