# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Waits until each service is active.
set -euo pipefail

. ../common/die.sh

. ../common/list.sh
. ../common/services.sh
. ../common/check-seconds.sh
for service in "${services[@]}"; do
	until systemctl is-active --quiet -- "$service"; do
		[ "$SECONDS" -lt "$seconds" ] || die "$service is not active"
		sleep 1
	done
	echo "$service is active"
done
