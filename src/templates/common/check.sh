# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that the new release is current, its service is active and its page
# responds.  Retries for CHECK_SECONDS.
set -euo pipefail

. ../common/die.sh

if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to check"
	exit 0
fi
. ../common/check-seconds.sh
link=${DEPLOY_ROOT:?}/current
[ "$link" -ef "$DEPLOY_ROOT/releases/${SLIPWAY_DEPLOYMENT_ID:?}" ] ||
	die "$link does not point to this release"
# The unit that watches the trigger file starts a moment later.
[ -z "${RELOAD_TRIGGER:-}" ] || sleep 2
. ../common/check-service.sh
. ../common/check-url.sh
