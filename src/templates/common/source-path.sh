# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2154
# Validates the directory to copy.

[[ $source != [/-]* && $source != *..* && /$source/ != */.git/* ]] ||
	die "SOURCE_DIR must be a directory of the checkout"
