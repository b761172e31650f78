# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Shows what is running and checks that the page responds.
set -euo pipefail

. ../common/die.sh

. ../common/compose.sh
. ../common/list.sh
. ../common/compose-services.sh
. ../common/check-seconds.sh
docker compose --project-name "$COMPOSE_PROJECT" ps "${services[@]}"
[ "${DRY_RUN:-no}" != yes ] || exit 0
. ../common/check-url.sh
