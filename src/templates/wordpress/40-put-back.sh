# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: restores the old themes and plugins.  New ones
# remain, unused until they are activated.
set -euo pipefail

. ../common/die.sh

. ../common/sites.sh
[ "${DRY_RUN:-no}" != yes ] || exit 0
shopt -s nullglob
for site in "${sites[@]}"; do
	old=$site/wp-content/.slipway
	for saved in "$old/${SLIPWAY_DEPLOYMENT_ID:?}"/wp-content/*/*/; do
		saved=${saved%/}
		part=${saved#"$old/$SLIPWAY_DEPLOYMENT_ID/"}
		rm -rf -- "${site:?}/$part"
		mv -T -- "$saved" "$site/$part"
		echo "$site: restored $part"
	done
	rm -rf -- "$old"
done
