# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Builds the site, unless the repository contains it as served.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh
. ../common/own-release.sh

. ../common/release-path.sh
. ../common/reuse-release.sh
case ${BUILD:-none} in
none) echo "nothing to build" ;;
make) need make make && make ;;
npm) need npm npm && npm ci --no-audit --no-fund && npm run build ;;
script) [ -f build.sh ] || die "the checkout has no build.sh"
	bash ./build.sh ;;
*) die "BUILD must be none, make, npm or script" ;;
esac
