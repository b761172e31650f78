# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that everything was copied and the page responds.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is not installed on the runner: apt-get install $2"; }

seconds=${CHECK_SECONDS:-60}
[[ $seconds =~ ^[1-9][0-9]{0,3}$ ]] || die "CHECK_SECONDS must be 1..9999"
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to check"
	exit 0
fi
source=${SOURCE_DIR:-.}
[[ $source != [/-]* && $source != *..* && /$source/ != */.git/* ]] ||
	die "SOURCE_DIR must be a directory of the checkout"
differs=$(rsync -rlc --dry-run --exclude=/.git --out-format=%n -- "./$source/" "${DEPLOY_DIR:?}/")
[ -z "$differs" ] || die "these differ from the checkout: $differs"
if [ -n "${CHECK_URL:-}" ]; then
	need curl curl
	until curl -fsS --globoff --proto =http,https --max-time 10 -o /dev/null -- "$CHECK_URL"; do
		[ "$SECONDS" -lt "$seconds" ] || die "$CHECK_URL did not respond with success within $seconds s"
		sleep 1
	done
	echo "$CHECK_URL responds"
fi
echo "$DEPLOY_DIR is up to date"
