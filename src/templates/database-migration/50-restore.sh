# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Prints the command that restores the dump; always runs.
set -euo pipefail

. ../common/die.sh

. ../common/database.sh
dump=${BACKUP_DIR:-}/$DB-${SLIPWAY_DEPLOYMENT_ID:?}.sql.gz
if [ -f "$dump" ]; then
	echo "to restore the database as it was before:"
	printf '\tzcat %q | mariadb' "$dump"
	[ "${#options[@]}" -eq 0 ] || printf ' %q' "${options[@]}"
	printf ' %q\n' "$DB"
else
	echo "no dump was made: nothing to restore"
fi
