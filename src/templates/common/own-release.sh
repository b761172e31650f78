# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2034,SC2154
# Makes the release.  A directory that exists belongs to another deployment: after
# a restore of the database, ids are given again.  The home is private to this
# deployment, so the mark in it tells what this one has made.

mark=${HOME:?}/.slipway-release
is_own() { [ "$(cat -- "$mark" 2>/dev/null)" = "$release" ]; }
claim_release() { # the command that creates $release and fails if it exists
	! is_own || return 0
	mkdir -p -- "$DEPLOY_ROOT/releases"
	if [ -e "$release" ] || [ -L "$release" ] || ! "$@" "$release"; then
		die "$release belongs to another deployment, which may be live: its id was given before." \
			"If the database was restored, run slipway-admin skip-ids; see slipway-admin(8)"
	fi
	printf '%s\n' "$release" >"$mark"
	# When it was made, for the step Prune, and of what, for a rollback.
	printf '%s\n' "${SLIPWAY_COMMIT:-}" >"$DEPLOY_ROOT/releases/.$SLIPWAY_DEPLOYMENT_ID"
}
