# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Pulls images and builds those that the compose file defines.
set -euo pipefail

. ../common/die.sh

. ../common/compose.sh
. ../common/list.sh
. ../common/compose-services.sh
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: pulling nothing"
	exit 0
fi
docker compose --project-name "$COMPOSE_PROJECT" pull --quiet --ignore-buildable "${services[@]}"
docker compose --project-name "$COMPOSE_PROJECT" build "${services[@]}"
