# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Replaces each theme and plugin by that of the repository and keeps the old one
# in wp-content/.slipway until the site is checked.
set -euo pipefail

. ../common/die.sh

. ../common/sites.sh
command -v rsync >/dev/null ||
	die "rsync is not installed on the runner: apt-get install rsync"
shopt -s nullglob
parts=(wp-content/themes/*/ wp-content/plugins/*/ wp-content/mu-plugins/*/)
[ "${#parts[@]}" -gt 0 ] || die "the checkout has no wp-content/themes/NAME or wp-content/plugins/NAME"
umask 022
for site in "${sites[@]}"; do
	old=$site/wp-content/.slipway
	for part in "${parts[@]%/}"; do
		if [ "${DRY_RUN:-no}" = yes ]; then
			rsync -a --dry-run --checksum --delete --itemize-changes -- "$part/" "$site/$part/"
			continue
		fi
		mkdir -p -- "$old/new/$part" "$old/${SLIPWAY_DEPLOYMENT_ID:?}/${part%/*}" "$site/${part%/*}"
		rsync -a --delete --chmod=u+rwX,go+rX,go-w -- "$part/" "$old/new/$part/"
		if [ -e "$site/$part" ]; then
			mv -T -- "$site/$part" "$old/$SLIPWAY_DEPLOYMENT_ID/$part"
		fi
		mv -T -- "$old/new/$part" "$site/$part"
		echo "$site: $part"
	done
done
