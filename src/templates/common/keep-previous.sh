# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Points previous at the current release, before current is switched.

rm -f -- current.new previous.new
if [ -L current ]; then
	ln -s -- "$(readlink -- current)" previous.new
	mv -T -- previous.new previous
fi
