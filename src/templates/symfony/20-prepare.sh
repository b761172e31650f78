# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Prepares the release: its cache.
set -euo pipefail

if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: there is no release to prepare"
	exit 0
fi
cd -- "${DEPLOY_ROOT:?}/releases/${SLIPWAY_DEPLOYMENT_ID:?}"
[ -f bin/console ] || {
	echo "the checkout has no bin/console" >&2
	exit 1
}
APP_ENV=prod php bin/console cache:clear --no-interaction
