# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Shows pending migrations and, if RUN_MIGRATIONS is yes, applies them.
set -euo pipefail

. ../common/enter-release.sh

enter_release "migrating nothing"
php artisan migrate:status --no-interaction || echo "no migration was applied yet"
if [ "${RUN_MIGRATIONS:-no}" = yes ]; then
	php artisan migrate --force --no-interaction
else
	echo "RUN_MIGRATIONS is not yes: the database is unchanged"
fi
