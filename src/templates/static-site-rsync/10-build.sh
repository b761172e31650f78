# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Builds the site, unless the repository contains it as served.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is not installed on the runner: apt-get install $2"; }

case ${BUILD:-none} in
none) echo "nothing to build" ;;
make) need make make && make ;;
npm) need npm npm && npm ci --no-audit --no-fund && npm run build ;;
script) [ -f build.sh ] || die "the checkout has no build.sh"
	bash ./build.sh ;;
*) die "BUILD must be none, make, npm or script" ;;
esac
