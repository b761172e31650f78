# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs when a step above failed: puts the previous release back, if this one
# was switched to, and removes this one.  The service is restarted the same
# way as above.
set -euo pipefail

id=${SLIPWAY_DEPLOYMENT_ID:?}
[[ $id =~ ^[0-9]+$ ]] || exit 1
[ "${DRY_RUN:-no}" != yes ] || exit 0
cd -- "${DEPLOY_ROOT:?}"
rm -f -- current.new previous.new
if [ "$(readlink -- current || true)" != "releases/$id" ]; then
	echo "the release was not switched to; current stays as it is"
elif [ -L previous ] && [ -d previous ]; then
	mv -T -- previous current
	echo "back to $(readlink -- current)"
	if [ -n "${RELOAD_TRIGGER:-}" ]; then
		printf '%s\n' "back from $id" >"$RELOAD_TRIGGER"
	elif [ -n "${SERVICE:-}" ]; then
		systemctl --no-ask-password reload-or-restart -- "$SERVICE"
	fi
else
	echo "there is no previous release: the failed one stays, to be looked at"
	exit 0
fi
rm -rf -- "releases/$id"
