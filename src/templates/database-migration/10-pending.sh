# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Lists the files that were not applied yet, and fails if an applied file has
# changed.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/database.sh
. ../common/migrations.sh
need mariadb mariadb-client
sql -e 'CREATE TABLE IF NOT EXISTS schema_migration (
	name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
	checksum CHAR(64) NOT NULL,
	applied_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP)'
applied=$(sql -e 'SELECT name, checksum FROM schema_migration')
: >"$HOME/pending" # not in the checkout, where it could be a link
# By number: 2_ comes before 10_.
while IFS= read -r -d '' file; do
	name=${file##*/}
	[[ $name =~ ^[A-Za-z0-9._-]+$ ]] || die "$name: only A-Z a-z 0-9 . _ - are allowed in a name"
	sum=$(sha256sum <"$file")
	known=$(awk -v name="$name" '$1 == name { print $2 }' <<<"$applied")
	if [ -z "$known" ]; then
		echo "pending: $name"
		printf '%s\n' "$name" >>"$HOME/pending"
	elif [ "$known" != "${sum%% *}" ]; then
		die "$name was changed after it was applied"
	fi
done < <(find "$dir/" -mindepth 1 -maxdepth 1 -name '*.sql' ! -name '.*' -print0 | sort -zV)
[ -s "$HOME/pending" ] || echo "nothing is pending"
