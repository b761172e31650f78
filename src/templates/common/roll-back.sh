# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: restores the previous release, if this one was
# current, and removes this one.  Restarts the service in the same way as the
# restart step.
set -euo pipefail

. ../common/die.sh
. ../common/is-trigger.sh
. ../common/own-release.sh
. ../common/restart-again.sh
. ../common/switch-link.sh

id=${SLIPWAY_DEPLOYMENT_ID:?}
[[ $id =~ ^[0-9]+$ ]] || exit 1
[ "${DRY_RUN:-no}" != yes ] || exit 0
cd -- "${DEPLOY_ROOT:?}"
release=$DEPLOY_ROOT/releases/$id
if ! is_own; then
	echo "this deployment made no release: nothing to undo"
	exit 0
fi
rm -f -- current.new previous.new
if switch_back "$id"; then
	echo "back to $(readlink -- current)"
	restart_again "back from $id"
elif [ "$(readlink -- current || true)" = "releases/$id" ]; then
	echo "no previous release: keeping the failed one for inspection"
	exit 0
else
	echo "this release was not current: current is unchanged"
fi
rm -rf -- "$release"
rm -f -- "releases/.$id"
