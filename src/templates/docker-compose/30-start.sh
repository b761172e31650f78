# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Starts changed services and waits for them.
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
seconds=${CHECK_SECONDS:-60}
[[ $seconds =~ ^[1-9][0-9]{0,3}$ ]] || die "CHECK_SECONDS must be 1..9999"
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: starting nothing"
	exit 0
fi
# Waits until all are running, and healthy if they have a health check.
docker compose --project-name "$COMPOSE_PROJECT" up --detach --wait \
	--wait-timeout "$seconds" "${services[@]}"
