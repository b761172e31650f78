# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Installs exactly the packages in package-lock.json, tests and builds.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh
. ../common/own-release.sh

. ../common/release-path.sh
. ../common/reuse-release.sh
need node nodejs
need npm npm
[ -f package.json ] || die "the checkout has no package.json"
[ -f package-lock.json ] || die "the checkout has no package-lock.json: create it with npm install and commit it"
node --version
npm ci --include=dev --no-audit --no-fund
if [ "${SKIP_TESTS:-no}" = yes ]; then
	echo "skipping tests"
else
	npm test --if-present
fi
NODE_ENV=${APP_ENV:-production} npm run build --if-present
