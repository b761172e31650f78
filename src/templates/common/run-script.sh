# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2154,SC2164
# On a host: runs the script of the current release, if one is set.

if [ -n "$script" ]; then
	cd -- current
	bash -- "$script" </dev/null
fi
