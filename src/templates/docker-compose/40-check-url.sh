# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Shows what is running and checks that the page responds.
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
docker compose --project-name "$COMPOSE_PROJECT" ps "${services[@]}"
if [ -n "${CHECK_URL:-}" ] && [ "${DRY_RUN:-no}" != yes ]; then
	command -v curl >/dev/null ||
		die "curl is not installed on the runner: apt-get install curl"
	until curl -fsS --globoff --proto =http,https --max-time 10 -o /dev/null -- "$CHECK_URL"; do
		[ "$SECONDS" -lt "$seconds" ] || die "$CHECK_URL did not respond with success within $seconds s"
		sleep 1
	done
	echo "$CHECK_URL responds"
fi
