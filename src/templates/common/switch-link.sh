# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Points current at a release with one rename, and previous at the one before.
# .switched records what both were, for a step that goes back.

point() { # link, release; an empty one removes the link
	rm -f -- "$1.new"
	if [ -z "$2" ]; then
		rm -f -- "$1"
		return
	fi
	ln -s -- "$2" "$1.new"
	mv -T -- "$1.new" "$1"
}
switch_link() { # id; after a rollback, its release may be current already
	local now before
	now=$(readlink -- current || true)
	before=$(readlink -- previous || true)
	[ ! current -ef "releases/$1" ] || return 0
	printf '%s\n' "$1" "$now" "$before" >.switched
	[ -z "$now" ] || point previous "$now"
	point current "releases/$1"
}
switch_back() { # id; fails if it is not current, or there is nothing to go back to
	local was
	[ -f .switched ] && mapfile -t was <.switched || return 1
	[ "${was[0]}" = "$1" ] && [ "$(readlink -- current || true)" = "releases/$1" ] || return 1
	[ -d "${was[1]}" ] && point current "${was[1]}" || return 1
	[ -d "${was[2]}" ] || was[2]=
	point previous "${was[2]}"
}
