# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Installs exactly what package-lock.json says, tests and builds.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is not installed on the runner: apt-get install $2"; }

need node nodejs
need npm npm
[ -f package.json ] || die "there is no package.json in the checkout"
[ -f package-lock.json ] || die "there is no package-lock.json in the checkout: npm install makes it, commit it"
node --version
npm ci --include=dev --no-audit --no-fund
if [ "${SKIP_TESTS:-no}" = yes ]; then
	echo "tests are skipped"
else
	npm test --if-present
fi
NODE_ENV=${APP_ENV:-production} npm run build --if-present
