# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2154
# Waits until CHECK_URL responds.

if [ -n "${CHECK_URL:-}" ]; then
	command -v curl >/dev/null ||
		die "curl is not installed on the runner: apt-get install curl"
	until curl -fsS --globoff --proto =http,https --max-time 10 -o /dev/null -- "$CHECK_URL"; do
		[ "$SECONDS" -lt "$seconds" ] || die "$CHECK_URL did not respond with success within $seconds s"
		sleep 1
	done
	echo "$CHECK_URL responds"
fi
