# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Shows pending migrations and, if RUN_MIGRATIONS is yes, applies them.
set -euo pipefail

if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: migrating nothing"
	exit 0
fi
cd -- "${DEPLOY_ROOT:?}/releases/${SLIPWAY_DEPLOYMENT_ID:?}"
export APP_ENV=prod
if [ "${RUN_MIGRATIONS:-no}" = yes ]; then
	php bin/console doctrine:migrations:status --no-interaction
	php bin/console doctrine:migrations:migrate --no-interaction --allow-no-migration
else
	echo "RUN_MIGRATIONS is not yes: the database is unchanged"
fi
