# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# The services to work on.

command -v systemctl >/dev/null || die "systemctl is not installed on the runner: this template needs systemd"
services=()
read_list services "${SERVICES:?choose at least one service}"
for service in "${services[@]}"; do
	[[ $service =~ ^[A-Za-z0-9][A-Za-z0-9@:._-]*$ ]] || die "$service is not a valid service name"
done
