# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Parses every file of the release.
set -euo pipefail

if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: there is no release to prepare"
	exit 0
fi
cd -- "${DEPLOY_ROOT:?}/releases/${SLIPWAY_DEPLOYMENT_ID:?}"
find . -path ./vendor -prune -o -type l -prune -o -name '*.php' -type f -print0 | xargs -0 -r -n 1 php -l >/dev/null
php -v | head -n 1
