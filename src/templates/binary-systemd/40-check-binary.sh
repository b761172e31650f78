# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that the new file is installed and runs, its service is active and its
# page responds.
set -euo pipefail
umask 022

. ../common/die.sh

. ../common/target.sh
. ../common/check-seconds.sh
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to check"
	exit 0
fi
cmp -- "./${BINARY:?}" "$TARGET"
[ -z "${VERSION_OPTION:-}" ] || "$TARGET" "$VERSION_OPTION"
. ../common/check-service.sh
. ../common/check-url.sh
