# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Validates the path of the installed program.

[[ ${TARGET:?set TARGET, for example /srv/app/bin/app} =~ ^/[^/]+/.*[^/]$ && $TARGET != *..* ]] ||
	die "TARGET must be an absolute path such as /srv/app/bin/app"
