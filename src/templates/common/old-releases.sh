# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2034,SC2154
# The releases beyond the newest $keep, without current and previous, and how to
# remove them.

failed=no
# The age of a release is that of its record, not its number: a restored or a new
# database gives lower numbers again.  Those without a record are the oldest.
old_releases() {
	find releases -mindepth 1 -maxdepth 1 -type d -regex 'releases/[0-9]+' -printf '%f\n' |
		while read -r id; do
			echo "$(stat -c %.9Y -- "releases/.$id" 2>/dev/null || echo 0) $id"
		done | sort -k 1,1nr -k 2,2nr | tail -n "+$((keep + 1))" |
		while read -r _ old; do
			[ current -ef "releases/$old" ] || [ previous -ef "releases/$old" ] || echo "$old"
		done
}
delete() { # directory; says what cannot be deleted, and goes on
	local path owner
	! rm -rf -- "$1" 2>/dev/null || return 0
	failed=yes
	read -r owner path < <(find "$1" -depth -printf '%u %p\n' 2>/dev/null | head -n 1) || true
	echo "$PWD/${path:-$1}, which belongs to ${owner:-another account}, cannot be deleted." \
		"As root: rm -rf $PWD/$1" >&2
	echo "What other accounts write belongs in a shared directory, not in a release." >&2
}
remove_release() { # renamed first: a rollback never finds half of a release
	if ! mv -T -- "releases/$1" "releases/$1.old"; then
		failed=yes
		return
	fi
	rm -f -- "releases/.$1"
	delete "releases/$1.old"
}
remove_rest() { # what an interrupted step left, and links to releases that are gone
	local rest
	while read -r rest; do
		delete "$rest"
	done < <(find releases -mindepth 1 -maxdepth 1 -type d -regex 'releases/[0-9]+\.old')
	find releases -mindepth 1 -maxdepth 1 -xtype l -regex 'releases/[0-9]+' -delete
	while read -r rest; do
		[ -e "releases/${rest#.}" ] || rm -f -- "releases/$rest"
	done < <(find releases -mindepth 1 -maxdepth 1 -type f -regex 'releases/\.[0-9]+' -printf '%f\n')
}
