# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Makes the release: a copy of the checkout, its packages, its shared files.
set -euo pipefail
umask 022

. ../common/die.sh
. ../common/need.sh

. ../common/release-path.sh
. ../common/reuse-release.sh
need php php-cli
need composer composer
need rsync rsync
[ -f composer.json ] || die "the checkout has no composer.json"
composer validate --no-interaction --strict --no-check-publish
if [ "${DRY_RUN:-no}" = yes ]; then
	composer install --no-interaction --no-dev --no-scripts --dry-run
	exit 0
fi
mkdir -p -- "$release" "$DEPLOY_ROOT/shared"
rsync -a --exclude=/.git --chmod=u+rwX,go+rX,go-w -- ./ "$release/"
# Files and directories that outlive releases are in shared/.  If the web server
# writes to them, give it permission once:
#	setfacl -R -m u:www-data:rwX,d:u:www-data:rwX DEPLOY_ROOT/shared
if [ -f artisan ]; then
	usual=.env,storage # Laravel
elif [ -f bin/console ]; then
	usual=.env.local,var/log # Symfony
else
	usual=storage
fi
IFS=, read -r -a shared <<<"${SHARED-$usual}"
for path in "${shared[@]}"; do
	[ -n "$path" ] || continue
	[[ $path != /* && $path != *..* ]] || die "SHARED: $path must be relative"
	if [ ! -e "$DEPLOY_ROOT/shared/$path" ]; then
		mkdir -p -- "$(dirname -- "$DEPLOY_ROOT/shared/$path")"
		if [ -e "$release/$path" ]; then
			cp -a -- "$release/$path" "$DEPLOY_ROOT/shared/$path"
		elif [[ ${path##*/} == *.* ]]; then
			die "$DEPLOY_ROOT/shared/$path is missing: put it there first"
		else
			mkdir -- "$DEPLOY_ROOT/shared/$path"
		fi
	fi
	rm -rf -- "${release:?}/$path"
	mkdir -p -- "$(dirname -- "$release/$path")"
	ln -s -- "$DEPLOY_ROOT/shared/$path" "$release/$path"
done
cd -- "$release"
composer install --no-interaction --no-dev --prefer-dist --no-progress --optimize-autoloader
