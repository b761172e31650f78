# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Prepares the release: its directories, its link to the storage, its caches.
set -euo pipefail

if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: there is no release to prepare"
	exit 0
fi
cd -- "${DEPLOY_ROOT:?}/releases/${SLIPWAY_DEPLOYMENT_ID:?}"
[ -f artisan ] || {
	echo "the checkout has no artisan" >&2
	exit 1
}
mkdir -p -- storage/app/public storage/framework/{cache,sessions,views} storage/logs
php artisan storage:link --force --no-interaction
php artisan optimize --no-interaction
