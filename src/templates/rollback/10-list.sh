# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Lists the releases to roll back to.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }

cd -- "${DEPLOY_ROOT:?set DEPLOY_ROOT, for example /srv/www/example.org}"
[ -L current ] || die "$DEPLOY_ROOT has no release: current is missing"
ls -ltd -- releases/*/
echo "current:  $(readlink -- current)"
echo "previous: $(readlink -- previous || echo none)"
