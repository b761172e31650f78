# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that the sites match the repository and the page responds.
set -euo pipefail

. ../common/die.sh

. ../common/list.sh
. ../common/sites.sh
. ../common/check-seconds.sh
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to check"
	exit 0
fi
. ../common/wordpress-parts.sh
for site in "${sites[@]}"; do
	for part in "${parts[@]}"; do
		diff -rq -- "$part" "$site/$part"
	done
done
. ../common/check-url.sh
