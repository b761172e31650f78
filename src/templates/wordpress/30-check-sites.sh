# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that the sites match the repository and the page responds.
set -euo pipefail

. ../common/die.sh

. ../common/sites.sh
. ../common/check-seconds.sh
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to check"
	exit 0
fi
shopt -s nullglob
for site in "${sites[@]}"; do
	for part in wp-content/{themes,plugins,mu-plugins}/*/; do
		diff -rq -- "${part%/}" "$site/${part%/}"
	done
done
. ../common/check-url.sh
for site in "${sites[@]}"; do
	rm -rf -- "$site/wp-content/.slipway"
done
