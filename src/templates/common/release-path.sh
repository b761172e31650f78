# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2034
# Where the release goes: validates DEPLOY_ROOT and sets release.

[[ ${DEPLOY_ROOT:?set DEPLOY_ROOT, for example /srv/www/example.org} =~ ^/[^/]+/[^/]+ ]] ||
	die "DEPLOY_ROOT must be an absolute path below a top directory, such as /srv/www/example.org"
[[ $DEPLOY_ROOT != *..* ]] || die "DEPLOY_ROOT must not contain .."
[[ $DEPLOY_ROOT/ != "${SLIPWAY_WORKSPACE:?}"/* ]] ||
	die "DEPLOY_ROOT must not be in the checkout, which is cleaned each time"
[[ ${KEEP_RELEASES:-5} =~ ^[1-9][0-9]{0,2}$ ]] || die "KEEP_RELEASES must be 1..999"
release=$DEPLOY_ROOT/releases/${SLIPWAY_DEPLOYMENT_ID:?}
