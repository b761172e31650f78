# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Builds the project, depending on the files found in the checkout.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/build-project.sh
git log -1 --oneline
