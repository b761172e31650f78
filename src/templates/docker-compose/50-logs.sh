# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs when a step above failed.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

command -v docker >/dev/null || die "docker is not installed on the runner: apt-get install docker.io"
docker compose version >/dev/null 2>&1 ||
	die "docker has no compose on the runner: see https://docs.docker.com/compose/install/linux/"
services=()
[ -z "${SERVICES:-}" ] || IFS=, read -r -a services <<<"$SERVICES"
docker compose --project-name "${COMPOSE_PROJECT:?}" logs --no-color --tail 100 "${services[@]}"
