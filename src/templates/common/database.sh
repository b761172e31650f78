# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2034
# The database and the options of its client.

[[ ${DB:?choose a database} =~ ^[A-Za-z0-9_]+$ ]] || die "DB must be the name of a database"
options=()
[ -z "${DB_DEFAULTS_FILE:-}" ] || options+=("--defaults-extra-file=$DB_DEFAULTS_FILE")
[ -z "${DB_SOCKET:-}" ] || options+=("--socket=$DB_SOCKET")
[ -z "${DB_HOST:-}" ] || options+=("--host=$DB_HOST")
[ -z "${DB_USER:-}" ] || options+=("--user=$DB_USER")
[ -z "${DB_PASSWORD:-}" ] || export MYSQL_PWD=$DB_PASSWORD
