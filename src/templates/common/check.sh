# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that the new release is current, its service is active and its page
# responds.  Retries for CHECK_SECONDS.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to check"
	exit 0
fi
seconds=${CHECK_SECONDS:-60}
[[ $seconds =~ ^[1-9][0-9]{0,3}$ ]] || die "CHECK_SECONDS must be 1..9999"
link=${DEPLOY_ROOT:?}/current
[ "$(readlink -- "$link")" = "releases/${SLIPWAY_DEPLOYMENT_ID:?}" ] ||
	die "$link does not point to this release"
# The unit that watches the trigger file starts a moment later.
[ -z "${RELOAD_TRIGGER:-}" ] || sleep 2
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
		[ "$SECONDS" -lt "$seconds" ] ||
			die "$CHECK_URL did not respond with success within $seconds s"
		sleep 1
	done
	echo "$CHECK_URL responds"
fi
