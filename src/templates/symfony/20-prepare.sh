# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Prepares the release: its cache.
set -euo pipefail

. ../common/enter-release.sh

enter_release "there is no release to prepare"
[ -f bin/console ] || {
	echo "the checkout has no bin/console" >&2
	exit 1
}
APP_ENV=${APP_ENV:-prod} php bin/console cache:clear --no-interaction
