# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Applies pending files.  MariaDB cannot roll back changes of a table: if a file
# fails halfway, repair the table by hand or restore the dump.
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
done <.pending
