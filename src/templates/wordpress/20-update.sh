# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Lets WordPress update its tables and forget its cache, where wp is there.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

IFS=, read -r -a sites <<<"${SITES:?choose one site at least}"
for site in "${sites[@]}"; do
	[[ $site =~ ^/[^/]+/[^/]+ && $site != *..* ]] || die "$site: must be an absolute path"
	[ -f "$site/wp-includes/version.php" ] || die "$site holds no WordPress"
done
if [ "${DRY_RUN:-no}" = yes ] || ! command -v wp >/dev/null; then
	echo "nothing is updated: a dry run, or wp (https://wp-cli.org) is not installed"
	exit 0
fi
for site in "${sites[@]}"; do
	wp --path="$site" core update-db
	wp --path="$site" cache flush
done
