# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2154
# Runs SQL in the database, and sets the directory with the migrations.

sql() { mariadb "${options[@]}" --batch --skip-column-names --default-character-set=utf8mb4 "$DB" "$@"; }
dir=${MIGRATIONS_DIR:-migrations}
[[ $dir != /* && $dir != *..* ]] || die "MIGRATIONS_DIR must be a directory of the checkout"
[ -d "$dir" ] || die "the checkout has no directory $dir"
[[ $(realpath -- "$dir")/ == "$(realpath -- .)"/* ]] ||
	die "$dir is a symbolic link that leads out of the checkout"
