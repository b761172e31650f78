# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Points current at a release with one rename, and previous at the one before.

switch_link() { # release; after a rollback, it may be current already
	[ ! current -ef "$1" ] || return 0
	rm -f -- current.new previous.new
	if [ -L current ]; then
		ln -s -- "$(readlink -- current)" previous.new
		mv -T -- previous.new previous
	fi
	ln -s -- "$1" current.new
	mv -T -- current.new current
}
