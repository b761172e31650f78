# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Points current at the chosen release; .rollback records the state before.
#
# PHP-FPM caches scripts by their path, and a link hides that the files behind
# it have changed.  Let nginx pass $realpath_root instead of $document_root, so
# that the path of a script contains its release, and reload PHP-FPM after the
# switch, as the step Restart does.
# slipway-templates(7) explains both.
set -euo pipefail

. ../common/die.sh

cd -- "${DEPLOY_ROOT:?}"
if [ -n "${RELEASE:-}" ]; then
	[[ $RELEASE =~ ^[0-9]+$ ]] || die "RELEASE must be a number"
	to=releases/$RELEASE
else
	to=$(readlink -- previous) || die "no previous release: set RELEASE"
fi
[ -d "$to" ] || die "$DEPLOY_ROOT/$to does not exist"
now=$(readlink -- current)
[ ! "$to" -ef current ] || die "$to is already the current release"
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: current would become $to"
	exit 0
fi
rm -f -- current.new previous.new
printf '%s %s\n' "${SLIPWAY_DEPLOYMENT_ID:?}" "$(readlink -- previous || echo -)" >.rollback
ln -s -- "$now" previous.new
mv -T -- previous.new previous
ln -s -- "$to" current.new
mv -T -- current.new current
echo "current -> $to"
