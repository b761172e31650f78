# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Workers exit after their current job; their supervisor restarts them.
set -euo pipefail

if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: restarting no workers"
	exit 0
fi
cd -- "${DEPLOY_ROOT:?}/current"
php artisan queue:restart --no-interaction
