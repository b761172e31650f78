# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Pulls images and builds those that the compose file defines.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

[[ ${COMPOSE_PROJECT:?} =~ ^[a-z0-9][a-z0-9_-]*$ ]] || die "COMPOSE_PROJECT must be the name of a compose project"
command -v docker >/dev/null || die "docker is not installed on the runner: apt-get install docker.io"
docker compose version >/dev/null 2>&1 ||
	die "docker on the runner has no compose: see https://docs.docker.com/compose/install/linux/"
services=()
[ -z "${SERVICES:-}" ] || IFS=, read -r -a services <<<"$SERVICES"
for service in "${services[@]}"; do
	[[ $service =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || die "$service is not a valid service name"
done
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: pulling nothing"
	exit 0
fi
docker compose --project-name "$COMPOSE_PROJECT" pull --quiet --ignore-buildable "${services[@]}"
docker compose --project-name "$COMPOSE_PROJECT" build "${services[@]}"
