# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that the page responds.
set -euo pipefail
umask 022

. ../common/die.sh

. ../common/vhost.sh
. ../common/check-seconds.sh
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to check"
	exit 0
fi
cmp -- "nginx/$VHOST" "$VHOST_DIR/$VHOST"
sleep 2 # workers with the old configuration respond for a moment
. ../common/check-url.sh
