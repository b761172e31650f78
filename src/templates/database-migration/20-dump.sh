# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Dumps the database, so that it can be restored.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is not installed on the runner: apt-get install mariadb-client"; }

[[ ${DB:?choose a database} =~ ^[A-Za-z0-9_]+$ ]] || die "DB must be the name of a database"
options=()
[ -z "${DB_DEFAULTS_FILE:-}" ] || options+=("--defaults-extra-file=$DB_DEFAULTS_FILE")
[ -z "${DB_SOCKET:-}" ] || options+=("--socket=$DB_SOCKET")
[ -z "${DB_HOST:-}" ] || options+=("--host=$DB_HOST")
[ -z "${DB_USER:-}" ] || options+=("--user=$DB_USER")
[ -z "${DB_PASSWORD:-}" ] || export MYSQL_PWD=$DB_PASSWORD
if [ ! -s .pending ] || [ "${CONFIRM:-}" != "$DB" ]; then
	echo "nothing will be applied: no dump"
	exit 0
fi
need mariadb-dump
[[ ${BACKUP_DIR:?set BACKUP_DIR} == /* && $BACKUP_DIR != *..* ]] || die "BACKUP_DIR must be an absolute path"
umask 077
mkdir -p -- "$BACKUP_DIR"
dump=$BACKUP_DIR/$DB-${SLIPWAY_DEPLOYMENT_ID:?}.sql.gz
mariadb-dump "${options[@]}" --single-transaction --routines --triggers --events \
	--default-character-set=utf8mb4 "$DB" | gzip >"$dump.part"
zcat -- "$dump.part" | tail -n 1 | grep -q 'Dump completed' || die "the dump is incomplete"
mv -- "$dump.part" "$dump"
ls -l -- "$dump"
