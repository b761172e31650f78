# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Dumps the database, so that it can be restored.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/database.sh
if [ ! -s "$HOME/pending" ] || [ "${CONFIRM:-}" != "$DB" ]; then
	echo "nothing will be applied: no dump"
	exit 0
fi
need mariadb-dump mariadb-client
[[ ${BACKUP_DIR:?set BACKUP_DIR} == /* && $BACKUP_DIR != *..* ]] || die "BACKUP_DIR must be an absolute path"
umask 077
mkdir -p -- "$BACKUP_DIR"
dump=$BACKUP_DIR/$DB-${SLIPWAY_DEPLOYMENT_ID:?}.sql.gz
mariadb-dump "${options[@]}" --single-transaction --routines --triggers --events \
	--default-character-set=utf8mb4 "$DB" | gzip >"$dump.part"
zcat -- "$dump.part" | tail -n 1 | grep -q 'Dump completed' || die "the dump is incomplete"
mv -- "$dump.part" "$dump"
ls -l -- "$dump"
