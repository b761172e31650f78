# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Updates the tables of WordPress and flushes its cache, if wp is installed.
set -euo pipefail

. ../common/die.sh

. ../common/list.sh
. ../common/sites.sh
if [ "${DRY_RUN:-no}" = yes ] || ! command -v wp >/dev/null; then
	echo "updating nothing: this is a dry run, or wp (https://wp-cli.org) is not installed"
	exit 0
fi
for site in "${sites[@]}"; do
	wp --path="$site" core update-db
	wp --path="$site" cache flush
done
