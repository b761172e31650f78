# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2164
# Goes to the new release.

enter_release() { # what a dry run says
	if [ "${DRY_RUN:-no}" = yes ]; then
		echo "dry run: $1"
		exit 0
	fi
	cd -- "${DEPLOY_ROOT:?}/releases"
	if [ -L "${SLIPWAY_DEPLOYMENT_ID:?}" ]; then
		echo "the release of deployment $(readlink -- "$SLIPWAY_DEPLOYMENT_ID") is used as it is"
		exit 0
	fi
	cd -- "$SLIPWAY_DEPLOYMENT_ID"
}
