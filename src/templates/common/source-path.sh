# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2154
# Validates the directory to copy.

[[ $source != [/-]* && $source != *..* && /$source/ != */.git/* ]] ||
	die "SOURCE_DIR must be a directory of the checkout"
if [ -e "$source" ]; then
	[[ $(realpath -- "$source")/ == "$(realpath -- .)"/* ]] ||
		die "$source is a symbolic link that leads out of the checkout"
	[ -z "$(find "./$source/" -maxdepth 0 -empty)" ] ||
		die "$source is empty: if it is a submodule, the checkout must fetch it"
fi
