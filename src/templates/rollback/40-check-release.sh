# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that the service is active and the page responds.
set -euo pipefail

. ../common/die.sh

. ../common/check-seconds.sh
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to check"
	exit 0
fi
cd -- "${DEPLOY_ROOT:?}"
[ -z "${RELEASE:-}" ] || [ "$(readlink -- current)" = "releases/$RELEASE" ] ||
	die "current is not releases/$RELEASE"
. ../common/check-service.sh
. ../common/check-url.sh
rm -f -- .rollback || true # the switch is done
