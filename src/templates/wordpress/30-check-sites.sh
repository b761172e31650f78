# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that the sites match the repository and the page responds.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

IFS=, read -r -a sites <<<"${SITES:?choose at least one site}"
for site in "${sites[@]}"; do
	[[ $site =~ ^/[^/]+/[^/]+ && $site != *..* ]] || die "$site: must be an absolute path"
	[ -f "$site/wp-includes/version.php" ] || die "$site does not contain WordPress"
done
seconds=${CHECK_SECONDS:-60}
[[ $seconds =~ ^[1-9][0-9]{0,3}$ ]] || die "CHECK_SECONDS must be 1..9999"
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
if [ -n "${CHECK_URL:-}" ]; then
	command -v curl >/dev/null ||
		die "curl is not installed on the runner: apt-get install curl"
	until curl -fsS --globoff --proto =http,https --max-time 10 -o /dev/null -- "$CHECK_URL"; do
		[ "$SECONDS" -lt "$seconds" ] || die "$CHECK_URL did not respond with success within $seconds s"
		sleep 1
	done
	echo "$CHECK_URL responds"
fi
for site in "${sites[@]}"; do
	rm -rf -- "$site/wp-content/.slipway"
done
