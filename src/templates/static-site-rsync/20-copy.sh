# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Copies the built site into a new release.
set -euo pipefail
umask 022

. ../common/die.sh
. ../common/need.sh
. ../common/own-release.sh

. ../common/release-path.sh
. ../common/reuse-release.sh
need rsync rsync
source=${SOURCE_DIR:-public}
. ../common/source-path.sh
. ../common/copy-site.sh
