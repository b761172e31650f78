# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed.
set -euo pipefail

. ../common/die.sh

. ../common/compose.sh
. ../common/list.sh
. ../common/compose-services.sh
docker compose --project-name "$COMPOSE_PROJECT" logs --no-color --tail 100 "${services[@]}"
