# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2154
# A rollback uses the release of the deployment that it repeats, if it is still
# there.  Then there is nothing to build, and only the link changes.

to=${SLIPWAY_ROLLBACK_TO:-}
if [ -n "$to" ] && [ -d "$DEPLOY_ROOT/releases/$to" ]; then
	[ "${DRY_RUN:-no}" = yes ] || ln -sfn -- "$to" "$release"
	echo "releases/$to is still there and is used as it is"
	exit 0
fi
