# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# The sites to work on.

sites=()
read_list sites "${SITES:?choose at least one site}"
for site in "${sites[@]}"; do
	[[ $site =~ ^/[^/]+/[^/]+ && $site != *..* ]] || die "$site: must be an absolute path"
	[ -f "$site/wp-includes/version.php" ] || die "$site does not contain WordPress"
done
