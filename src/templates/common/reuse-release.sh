# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2154
# A rollback uses the release of the deployment that it repeats, if it is still
# there.  Then there is nothing to build, and only the link changes.

is_release_of() { # id; one without a record is from an older version
	[ -d "$DEPLOY_ROOT/releases/$1" ] && {
		[ ! -f "$DEPLOY_ROOT/releases/.$1" ] ||
			[ "$(cat -- "$DEPLOY_ROOT/releases/.$1")" = "${SLIPWAY_COMMIT:-}" ]
	}
}
to=${SLIPWAY_ROLLBACK_TO:-}
if [ -n "$to" ] && is_release_of "$to"; then
	[ "${DRY_RUN:-no}" = yes ] || claim_release ln -s -T -- "$to"
	echo "releases/$to is still there and is used as it is"
	exit 0
fi
