# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2154
# The releases beyond the newest $keep, without current and previous, and how to
# remove them.

old_releases() {
	find releases -mindepth 1 -maxdepth 1 -type d -regex 'releases/[0-9]+' -printf '%f\n' |
		sort -rn | tail -n "+$((keep + 1))" |
		while read -r old; do
			[ current -ef "releases/$old" ] || [ previous -ef "releases/$old" ] || echo "$old"
		done
}
remove_release() { # renamed first: a rollback never finds half of a release
	mv -T -- "releases/$1" "releases/$1.old"
	rm -rf -- "releases/$1.old"
}
remove_rest() { # what an interrupted step left, and links to releases that are gone
	rm -rf -- releases/*.old
	find releases -mindepth 1 -maxdepth 1 -xtype l -regex 'releases/[0-9]+' -delete
}
