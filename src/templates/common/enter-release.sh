# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2164
# Goes to the new release.

enter_release() { # what a dry run says
	if [ "${DRY_RUN:-no}" = yes ]; then
		echo "dry run: $1"
		exit 0
	fi
	cd -- "${DEPLOY_ROOT:?}/releases/${SLIPWAY_DEPLOYMENT_ID:?}"
}
