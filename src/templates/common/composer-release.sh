# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Makes the release: a copy of the checkout, its packages, its shared files.
set -euo pipefail
umask 022

. ../common/die.sh
. ../common/need.sh
. ../common/own-release.sh
. ../common/list.sh

# Nothing is removed, created or linked behind a symbolic link: the repository or
# a program may have put it there, and it may lead anywhere.
no_links() { # directory, path below it; the last component may be a link
	local at=$1 part parts
	IFS=/ read -r -a parts <<<"$2"
	for part in "${parts[@]:0:${#parts[@]}-1}"; do
		at+=/$part
		[ ! -L "$at" ] || die "$at is a symbolic link: replace it by a directory"
	done
}
# Files and directories that outlive releases are in shared/.  If the web server
# writes to them, give it permission once:
#	setfacl -R -m u:www-data:rwX,d:u:www-data:rwX DEPLOY_ROOT/shared
shared=()
check_shared() {
	local path other
	for path in "${shared[@]}"; do
		[[ /$path/ != *//* && /$path/ != */./* && /$path/ != */../* && $path != *$'\n'* ]] ||
			die "SHARED: $path must be relative, without empty, . and .. components"
	done
	for path in "${!shared[@]}"; do
		for other in "${!shared[@]}"; do
			[ "$path" = "$other" ] || [[ ${shared[other]}/ != "${shared[path]}"/* ]] ||
				die "SHARED: ${shared[path]} contains ${shared[other]}: list only one of them"
		done
	done
}
share() { # path
	local from=$DEPLOY_ROOT/shared/$1 to=$release/$1
	local copy=$DEPLOY_ROOT/shared/.copy-$SLIPWAY_DEPLOYMENT_ID
	no_links "$DEPLOY_ROOT/shared" "$1"
	no_links "$release" "$1"
	if [ ! -e "$from" ]; then
		[ ! -L "$from" ] || die "$from is a symbolic link to nothing"
		mkdir -p -- "${from%/*}"
		if [ -e "$to" ] && [ ! -L "$to" ]; then
			# renamed when it is complete: half of a copy would count as the whole
			cp -a -T -- "$to" "$copy" || {
				rm -rf -- "$copy"
				die "$1 cannot be copied to $DEPLOY_ROOT/shared"
			}
			mv -T -- "$copy" "$from"
		elif [[ ${1##*/} == *.* ]]; then
			die "$from is missing: put it there first"
		else
			mkdir -- "$from"
		fi
	fi
	rm -rf -- "$to"
	mkdir -p -- "${to%/*}"
	ln -s -T -- "$from" "$to"
}

. ../common/release-path.sh
. ../common/reuse-release.sh
need php php-cli
need composer composer
need rsync rsync
[ -f composer.json ] || die "the checkout has no composer.json"
if [ -f artisan ]; then
	usual=.env,storage # Laravel
elif [ -f bin/console ]; then
	usual=.env.local,var/log # Symfony
	export APP_ENV=${APP_ENV:-prod} # for composer's scripts, too
else
	usual=storage
fi
read_list shared "${SHARED-$usual}"
check_shared
# Without .git, composer does not know the version of the application.
if [[ ${SLIPWAY_TAG:-} =~ ^v?([0-9]+(\.[0-9]+){0,3})$ ]]; then
	export COMPOSER_ROOT_VERSION=${COMPOSER_ROOT_VERSION:-${BASH_REMATCH[1]}}
elif [[ ${SLIPWAY_BRANCH:-} =~ ^[A-Za-z][A-Za-z0-9._/-]*$ ]]; then
	export COMPOSER_ROOT_VERSION=${COMPOSER_ROOT_VERSION:-dev-$SLIPWAY_BRANCH}
fi
# Whether composer can install the application matters, not whether it is perfect.
composer validate --no-interaction --no-check-publish ||
	echo "composer has remarks, see above; the installation decides"
if [ "${DRY_RUN:-no}" = yes ]; then
	composer install --no-interaction --no-dev --no-scripts --dry-run
	exit 0
fi
. ../common/make-release.sh
mkdir -p -- "$DEPLOY_ROOT/shared"
for path in "${shared[@]}"; do
	share "$path"
done
composer install --no-interaction --no-dev --prefer-dist --no-progress --optimize-autoloader
