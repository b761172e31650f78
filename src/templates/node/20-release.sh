# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Copies the built tree into a release and drops development packages.
set -euo pipefail
umask 022

. ../common/die.sh
. ../common/need.sh
. ../common/own-release.sh

. ../common/release-path.sh
. ../common/reuse-release.sh
need rsync rsync
. ../common/make-release.sh
npm prune --omit=dev --no-audit --no-fund
