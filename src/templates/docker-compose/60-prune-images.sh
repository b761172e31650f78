# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Removes images that no container uses, if PRUNE is yes.
set -euo pipefail

. ../common/die.sh

. ../common/compose.sh
if [ "${PRUNE:-no}" = yes ] && [ "${DRY_RUN:-no}" != yes ]; then
	docker image prune --force
fi
