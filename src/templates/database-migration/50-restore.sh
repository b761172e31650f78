# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Prints the command that restores the dump; always runs.
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
dump=${BACKUP_DIR:-}/$DB-${SLIPWAY_DEPLOYMENT_ID:?}.sql.gz
if [ -f "$dump" ]; then
	echo "to restore the database as it was before:"
	printf '\tzcat %q | mariadb' "$dump"
	[ "${#options[@]}" -eq 0 ] || printf ' %q' "${options[@]}"
	printf ' %q\n' "$DB"
else
	echo "no dump was made: nothing to restore"
fi
