# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that everything was copied and the page responds.
set -euo pipefail

. ../common/die.sh

. ../common/check-seconds.sh
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to check"
	exit 0
fi
source=${SOURCE_DIR:-.}
. ../common/source-path.sh
differs=$(rsync -rlc --dry-run --exclude=/.git --out-format=%n -- "./$source/" "${DEPLOY_DIR:?}/")
[ -z "$differs" ] || die "these differ from the checkout: $differs"
. ../common/check-url.sh
echo "$DEPLOY_DIR is up to date"
