# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Applies pending files.  MariaDB cannot roll back changes of a table: if a file
# fails halfway, repair the table by hand or restore the dump.
set -euo pipefail

. ../common/die.sh

. ../common/database.sh
. ../common/migrations.sh
if [ "${CONFIRM:-}" != "$DB" ]; then
	[ -z "${CONFIRM:-}" ] || die "CONFIRM is not $DB: nothing is applied"
	echo "CONFIRM is empty: nothing is applied"
	exit 0
fi
while read -r name; do
	sum=$(sha256sum <"$dir/$name")
	echo "applying $name"
	sql <"$dir/$name"
	sql -e "INSERT INTO schema_migration (name, checksum) VALUES ('$name', '${sum%% *}')"
done <"$HOME/pending"
