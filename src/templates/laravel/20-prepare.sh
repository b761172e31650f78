# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Prepares the release: its directories, its link to the storage, its caches.
set -euo pipefail

. ../common/enter-release.sh

enter_release "there is no release to prepare"
[ -f artisan ] || {
	echo "the checkout has no artisan" >&2
	exit 1
}
if [ -L storage ] && [ "$(readlink -- storage)" != "$DEPLOY_ROOT/shared/storage" ]; then
	echo "storage is a symbolic link in the repository: remove it" >&2
	exit 1
fi
mkdir -p -- storage/app/public storage/framework/{cache,sessions,views} storage/logs
php artisan storage:link --force --no-interaction
php artisan optimize --no-interaction
