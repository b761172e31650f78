# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: restores the previous release, if this one was
# current, and removes this one.  Restarts the service in the same way as the
# restart step.
set -euo pipefail

. ../common/is-trigger.sh
. ../common/restart-again.sh

id=${SLIPWAY_DEPLOYMENT_ID:?}
[[ $id =~ ^[0-9]+$ ]] || exit 1
[ "${DRY_RUN:-no}" != yes ] || exit 0
cd -- "${DEPLOY_ROOT:?}"
rm -f -- current.new previous.new
if [ "$(readlink -- current || true)" != "releases/$id" ]; then
	echo "this release was not current: current is unchanged"
elif [ -L previous ] && [ -d previous ]; then
	mv -T -- previous current
	echo "back to $(readlink -- current)"
	restart_again "back from $id"
else
	echo "no previous release: keeping the failed one for inspection"
	exit 0
fi
rm -rf -- "releases/$id"
