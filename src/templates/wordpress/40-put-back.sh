# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs when a step above failed: puts the old themes and plugins back.  One that
# was new stays, unused until somebody activates it.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

IFS=, read -r -a sites <<<"${SITES:?choose one site at least}"
for site in "${sites[@]}"; do
	[[ $site =~ ^/[^/]+/[^/]+ && $site != *..* ]] || die "$site: must be an absolute path"
	[ -f "$site/wp-includes/version.php" ] || die "$site holds no WordPress"
done
[ "${DRY_RUN:-no}" != yes ] || exit 0
shopt -s nullglob
for site in "${sites[@]}"; do
	old=$site/wp-content/.slipway
	for saved in "$old/${SLIPWAY_DEPLOYMENT_ID:?}"/wp-content/*/*/; do
		saved=${saved%/}
		part=${saved#"$old/$SLIPWAY_DEPLOYMENT_ID/"}
		rm -rf -- "${site:?}/$part"
		mv -T -- "$saved" "$site/$part"
		echo "$site: $part is the old one again"
	done
	rm -rf -- "$old"
done
