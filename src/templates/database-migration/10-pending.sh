# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Lists the files that were not applied yet, and fails if an applied file has
# changed.
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
sql() { mariadb "${options[@]}" --batch --skip-column-names --default-character-set=utf8mb4 "$DB" "$@"; }
dir=${MIGRATIONS_DIR:-migrations}
[[ $dir != /* && $dir != *..* ]] || die "MIGRATIONS_DIR must be a directory of the checkout"
[ -d "$dir" ] || die "the checkout has no directory $dir"
need mariadb
sql -e 'CREATE TABLE IF NOT EXISTS schema_migration (
	name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
	checksum CHAR(64) NOT NULL,
	applied_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP)'
applied=$(sql -e 'SELECT name, checksum FROM schema_migration')
: >.pending
shopt -s nullglob
for file in "$dir"/*.sql; do
	name=${file##*/}
	[[ $name =~ ^[A-Za-z0-9._-]+$ ]] || die "$name: only A-Z a-z 0-9 . _ - are allowed in a name"
	sum=$(sha256sum <"$file")
	known=$(awk -v name="$name" '$1 == name { print $2 }' <<<"$applied")
	if [ -z "$known" ]; then
		echo "pending: $name"
		printf '%s\n' "$name" >>.pending
	elif [ "$known" != "${sum%% *}" ]; then
		die "$name was changed after it was applied"
	fi
done
[ -s .pending ] || echo "nothing is pending"
