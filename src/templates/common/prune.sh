# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Removes the oldest releases beyond KEEP_RELEASES; never current or previous.
# The new release is live and stays so, whatever cannot be removed.
set -euo pipefail

. ../common/die.sh
. ../common/old-releases.sh

keep=${KEEP_RELEASES:-5}
[[ $keep =~ ^[1-9][0-9]{0,2}$ ]] || die "KEEP_RELEASES must be 1..999"
cd -- "${DEPLOY_ROOT:?}"
[ -d releases ] || exit 0
if [ "${DRY_RUN:-no}" = yes ]; then
	old_releases | sed 's|.*|dry run: releases/& would be removed|'
	exit 0
fi
remove_rest
for old in $(old_releases); do
	echo "removing releases/$old"
	remove_release "$old"
done
[ "$failed" = no ]
