# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that the new file is installed and runs, its service is active and its
# page responds.
set -euo pipefail
umask 022

die() { printf '%s\n' "$*" >&2; exit 1; }

[[ ${TARGET:?set TARGET, for example /srv/app/bin/app} =~ ^/[^/]+/.*[^/]$ && $TARGET != *..* ]] ||
	die "TARGET must be an absolute path such as /srv/app/bin/app"
seconds=${CHECK_SECONDS:-60}
[[ $seconds =~ ^[1-9][0-9]{0,3}$ ]] || die "CHECK_SECONDS must be 1..9999"
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to check"
	exit 0
fi
cmp -- "./${BINARY:?}" "$TARGET"
[ -z "${VERSION_OPTION:-}" ] || "$TARGET" "$VERSION_OPTION"
if [ -n "${SERVICE:-}" ] && command -v systemctl >/dev/null; then
	until systemctl is-active --quiet -- "$SERVICE"; do
		[ "$SECONDS" -lt "$seconds" ] || die "$SERVICE is not active"
		sleep 1
	done
	echo "$SERVICE is active"
fi
if [ -n "${CHECK_URL:-}" ]; then
	command -v curl >/dev/null ||
		die "curl is not installed on the runner: apt-get install curl"
	until curl -fsS --globoff --proto =http,https --max-time 10 -o /dev/null -- "$CHECK_URL"; do
		[ "$SECONDS" -lt "$seconds" ] || die "$CHECK_URL did not respond with success within $seconds s"
		sleep 1
	done
	echo "$CHECK_URL responds"
fi
