# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Requires docker with compose, and the name of the project.

[[ ${COMPOSE_PROJECT:?} =~ ^[a-z0-9][a-z0-9_-]*$ ]] || die "COMPOSE_PROJECT must be the name of a compose project"
command -v docker >/dev/null || die "docker is not installed on the runner: apt-get install docker.io"
docker compose version >/dev/null 2>&1 ||
	die "docker on the runner has no compose: see https://docs.docker.com/compose/install/linux/"
