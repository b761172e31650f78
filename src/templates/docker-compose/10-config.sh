# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Validates the compose file and shows what is running.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

[[ ${COMPOSE_PROJECT:?} =~ ^[a-z0-9][a-z0-9_-]*$ ]] || die "COMPOSE_PROJECT must be the name of a compose project"
command -v docker >/dev/null || die "docker is not installed on the runner: apt-get install docker.io"
docker compose version >/dev/null 2>&1 ||
	die "docker on the runner has no compose: see https://docs.docker.com/compose/install/linux/"
docker compose --project-name "$COMPOSE_PROJECT" config --quiet
docker compose --project-name "$COMPOSE_PROJECT" ps
