# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Copies the result; keeps files that are only in DEPLOY_DIR unless DELETE is yes.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

need rsync rsync
[[ ${DEPLOY_DIR:?set DEPLOY_DIR, for example /srv/www/example.org} =~ ^/[^/]+/[^/]+ && $DEPLOY_DIR != *..* ]] ||
	die "DEPLOY_DIR must be an absolute path below a top directory, such as /srv/www/example.org"
[[ $DEPLOY_DIR/ != "${SLIPWAY_WORKSPACE:?}"/* ]] ||
	die "DEPLOY_DIR must not be in the checkout, which is cleaned each time"
source=${SOURCE_DIR:-.}
. ../common/source-path.sh
[ -d "$source" ] || die "the checkout has no directory $source"
options=(-a --checksum --itemize-changes --exclude=/.git "--chmod=u+rwX,go+rX,go-w")
[ "${DELETE:-no}" != yes ] || options+=(--delete --delay-updates)
[ "${DRY_RUN:-no}" != yes ] || options+=(--dry-run)
[ "${DRY_RUN:-no}" = yes ] || mkdir -p -- "$DEPLOY_DIR"
rsync "${options[@]}" -- "./$source/" "$DEPLOY_DIR/"
