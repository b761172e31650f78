# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: restores the old themes, plugins and drop-ins, and
# removes new ones, some of which would be active at once.
set -euo pipefail

. ../common/die.sh

. ../common/list.sh
. ../common/sites.sh
[ "${DRY_RUN:-no}" != yes ] || exit 0
shopt -s nullglob
for site in "${sites[@]}"; do
	old=$site/wp-content/.slipway
	saved=$old/${SLIPWAY_DEPLOYMENT_ID:?}
	[ -d "$saved" ] || continue
	if [ -f "$saved/new" ]; then
		while IFS= read -r part; do
			rm -rf -- "${site:?}/$part"
			echo "$site: removed $part, which was new"
		done <"$saved/new"
	fi
	for path in "$saved"/wp-content/{themes,plugins,mu-plugins}/* "$saved"/wp-content/*.php; do
		part=${path#"$saved/"}
		rm -rf -- "${site:?}/$part"
		mv -T -- "$path" "$site/$part"
		echo "$site: restored $part"
	done
	rm -rf -- "$old"
done
