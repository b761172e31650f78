# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Removes images that no container uses, if PRUNE is yes.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

command -v docker >/dev/null || die "docker is not installed on the runner: apt-get install docker.io"
docker compose version >/dev/null 2>&1 ||
	die "docker on the runner has no compose: see https://docs.docker.com/compose/install/linux/"
if [ "${PRUNE:-no}" = yes ] && [ "${DRY_RUN:-no}" != yes ]; then
	docker image prune --force
fi
