# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Points DEPLOY_ROOT/current at this deployment's release with one rename, so
# that no request ever sees half a release.  DEPLOY_ROOT/previous points to the
# previous release.  A rollback to the release that is current changes neither.
#
# PHP-FPM caches scripts by their path, and a link hides that the files behind
# it have changed.  Let nginx pass $realpath_root instead of $document_root, so
# that the path of a script contains its release, and reload PHP-FPM after the
# switch, as the step Restart does.
# slipway-templates(7) explains both.
set -euo pipefail

. ../common/die.sh
. ../common/own-release.sh
. ../common/switch-link.sh

id=${SLIPWAY_DEPLOYMENT_ID:?}
cd -- "${DEPLOY_ROOT:?set DEPLOY_ROOT, for example /srv/www/example.org}"
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: current would become releases/$id"
	exit 0
fi
release=$DEPLOY_ROOT/releases/$id
[ -d "$release" ] || die "$release is missing"
is_own || die "$release was made by another deployment"
if [ -e current ] && [ ! -L current ]; then
	die "$DEPLOY_ROOT/current is not a symbolic link: move it away first"
fi
switch_link "$id"
echo "current -> $(readlink -- current)"
