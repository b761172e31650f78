# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that everything is recorded and every table is intact.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/database.sh
. ../common/migrations.sh
if [ "${CONFIRM:-}" = "$DB" ]; then
	while read -r name; do
		[ "$(sql -e "SELECT COUNT(*) FROM schema_migration WHERE name = '$name'")" = 1 ] ||
			die "$name is not recorded"
	done <"$HOME/pending"
fi
need mariadb-check mariadb-client
mariadb-check "${options[@]}" --quick --silent "$DB"
echo "all tables of $DB are intact"
