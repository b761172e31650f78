# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Copies the built site into a new release.
set -euo pipefail
umask 022

die() { printf '%s\n' "$*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is not installed on the runner: apt-get install $2"; }

[[ ${DEPLOY_ROOT:?set DEPLOY_ROOT, for example /srv/www/example.org} =~ ^/[^/]+/[^/]+ ]] ||
	die "DEPLOY_ROOT must be an absolute path below a top directory, such as /srv/www/example.org"
[[ $DEPLOY_ROOT != *..* ]] || die "DEPLOY_ROOT must not contain .."
[[ $DEPLOY_ROOT/ != "${SLIPWAY_WORKSPACE:?}"/* ]] ||
	die "DEPLOY_ROOT must not be in the checkout, which is cleaned each time"
release=$DEPLOY_ROOT/releases/${SLIPWAY_DEPLOYMENT_ID:?}
need rsync rsync
source=build-site
[[ $source != [/-]* && $source != *..* && /$source/ != */.git/* ]] ||
	die "SOURCE_DIR must be a directory of the checkout"
[ -d "$source" ] || die "the checkout has no directory $source"
[ -n "$(find "./$source" -maxdepth 1 -name 'index.*' -print -quit)" ] ||
	die "$source contains no index page: check SOURCE_DIR"
options=(-a --exclude=/.git "--chmod=u+rwX,go+rX,go-w")
if [ "${DRY_RUN:-no}" = yes ]; then
	[ -d "$DEPLOY_ROOT/current" ] || { echo "dry run: this would be the first release"; exit 0; }
	rsync "${options[@]}" --dry-run --checksum --delete --itemize-changes -- \
		"./$source/" "$DEPLOY_ROOT/current/"
	exit 0
fi
mkdir -p -- "$release"
rsync "${options[@]}" -- "./$source/" "$release/"
echo "copied $(find "$release" -type f | wc -l) files to $release"
