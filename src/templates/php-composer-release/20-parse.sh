# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Parses every file of the release.
set -euo pipefail

. ../common/enter-release.sh

enter_release "there is no release to prepare"
find . -path ./vendor -prune -o -type l -prune -o -name '*.php' -type f -print0 | xargs -0 -r -n 1 php -l >/dev/null
php -v | head -n 1
