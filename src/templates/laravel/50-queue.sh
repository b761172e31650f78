# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Workers end after their job and are started again by their supervisor.
set -euo pipefail

if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: workers stay as they are"
	exit 0
fi
cd -- "${DEPLOY_ROOT:?}/current"
php artisan queue:restart --no-interaction
