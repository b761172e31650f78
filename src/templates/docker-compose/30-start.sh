# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Starts changed services and waits for them.
set -euo pipefail

. ../common/die.sh

. ../common/compose.sh
. ../common/list.sh
. ../common/compose-services.sh
. ../common/check-seconds.sh
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: starting nothing"
	exit 0
fi
# Waits until all are running, and healthy if they have a health check.
docker compose --project-name "$COMPOSE_PROJECT" up --detach --wait \
	--wait-timeout "$seconds" "${services[@]}"
