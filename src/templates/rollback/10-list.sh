# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Lists the releases to roll back to.
set -euo pipefail

. ../common/die.sh

cd -- "${DEPLOY_ROOT:?set DEPLOY_ROOT, for example /srv/www/example.org}"
[ -L current ] || die "$DEPLOY_ROOT has no release: current is missing"
ls -ltd -- releases/*
echo "current:  $(readlink -- current)"
echo "previous: $(readlink -- previous || echo none)"
