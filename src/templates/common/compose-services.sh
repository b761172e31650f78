# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# The services of the compose file; all if SERVICES is empty.

services=()
[ -z "${SERVICES:-}" ] || read_list services "$SERVICES"
for service in "${services[@]}"; do
	[[ $service =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || die "$service is not a valid service name"
done
