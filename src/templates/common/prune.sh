# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Removes the oldest releases beyond KEEP_RELEASES; never current or previous.
set -euo pipefail

. ../common/die.sh

keep=${KEEP_RELEASES:-5}
[[ $keep =~ ^[1-9][0-9]{0,2}$ ]] || die "KEEP_RELEASES must be 1..999"
cd -- "${DEPLOY_ROOT:?}"
[ -d releases ] || exit 0
find releases -mindepth 1 -maxdepth 1 -type d -regex 'releases/[0-9]+' -printf '%f\n' |
	sort -rn | tail -n "+$((keep + 1))" |
	while read -r old; do
		case releases/$old in
		"$(readlink -- current || true)" | "$(readlink -- previous || true)")
			continue ;;
		esac
		if [ "${DRY_RUN:-no}" = yes ]; then
			echo "dry run: releases/$old would be removed"
		else
			echo "removing releases/$old"
			rm -rf -- "releases/$old"
		fi
	done
