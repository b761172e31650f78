# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Shows the state of the services; fails if systemd does not know one.
set -euo pipefail

. ../common/die.sh

. ../common/list.sh
. ../common/services.sh
for service in "${services[@]}"; do
	state=$(systemctl show --property=LoadState --value -- "$service")
	[ "$state" = loaded ] || die "$service: $state"
	printf '%s: %s\n' "$service" "$(systemctl is-active -- "$service" || true)"
done
