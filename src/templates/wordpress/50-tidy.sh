# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Removes what the new themes and plugins have replaced.
set -euo pipefail

. ../common/die.sh

. ../common/list.sh
. ../common/sites.sh
[ "${DRY_RUN:-no}" != yes ] || exit 0
failed=no
for site in "${sites[@]}"; do
	rm -rf -- "$site/wp-content/.slipway" || failed=yes
done
if [ "$failed" = yes ]; then
	die "the files above belong to other accounts: as root, remove wp-content/.slipway"
fi
