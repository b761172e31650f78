# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that the page responds.
set -euo pipefail
umask 022

die() { printf '%s\n' "$*" >&2; exit 1; }

[[ ${VHOST:?choose a file} =~ ^[A-Za-z0-9_-][A-Za-z0-9._-]*$ ]] || die "VHOST must be a file name"
[[ ${VHOST_DIR:?} =~ ^/[^/]+/[^/]+ && $VHOST_DIR != *..* ]] || die "VHOST_DIR must be an absolute path"
seconds=${CHECK_SECONDS:-60}
[[ $seconds =~ ^[1-9][0-9]{0,3}$ ]] || die "CHECK_SECONDS must be 1..9999"
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to check"
	exit 0
fi
cmp -- "nginx/$VHOST" "$VHOST_DIR/$VHOST"
sleep 2 # workers with the old configuration respond for a moment
if [ -n "${CHECK_URL:-}" ]; then
	command -v curl >/dev/null ||
		die "curl is not installed on the runner: apt-get install curl"
	until curl -fsS --globoff --proto =http,https --max-time 10 -o /dev/null -- "$CHECK_URL"; do
		[ "$SECONDS" -lt "$seconds" ] || die "$CHECK_URL did not respond with success within $seconds s"
		sleep 1
	done
	echo "$CHECK_URL responds"
fi
