# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Copies the built tree into a release and drops development packages.
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
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: would make $release"
	exit 0
fi
mkdir -p -- "$release"
rsync -a --exclude=/.git --chmod=u+rwX,go+rX,go-w -- ./ "$release/"
cd -- "$release"
npm prune --omit=dev --no-audit --no-fund
