# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Shows pending migrations and, if RUN_MIGRATIONS is yes, applies them.
set -euo pipefail

. ../common/enter-release.sh

enter_release "migrating nothing"
export APP_ENV=${APP_ENV:-prod}
if [ "${RUN_MIGRATIONS:-no}" = yes ]; then
	php bin/console doctrine:migrations:status --no-interaction
	php bin/console doctrine:migrations:migrate --no-interaction --allow-no-migration
else
	echo "RUN_MIGRATIONS is not yes: the database is unchanged"
fi
