# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Validates the compose file and shows what is running.
set -euo pipefail

. ../common/die.sh

. ../common/compose.sh
docker compose --project-name "$COMPOSE_PROJECT" config --quiet
docker compose --project-name "$COMPOSE_PROJECT" ps
