# SPDX-License-Identifier: ISC
# shellcheck shell=bash

# Blanks around the items of a list do not count.
read_list() { # array, items separated by commas
	local -n items=$1
	local i
	IFS=, read -r -a items <<<"$2"
	for i in "${!items[@]}"; do
		items[i]=${items[i]#"${items[i]%%[![:blank:]]*}"}
		items[i]=${items[i]%"${items[i]##*[![:blank:]]}"}
	done
}
