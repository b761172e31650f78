# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Shows the last log lines of each service; without the group systemd-journal,
# there may be none.
set -euo pipefail

. ../common/die.sh

. ../common/list.sh
. ../common/services.sh
for service in "${services[@]}"; do
	systemctl status --no-pager --lines=20 -- "$service" || true
done
