# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2154
# Replaces each theme, plugin and drop-in by that of the repository and keeps the
# old one in wp-content/.slipway until the site is checked.
set -euo pipefail

. ../common/die.sh

. ../common/list.sh
. ../common/sites.sh
command -v rsync >/dev/null ||
	die "rsync is not installed on the runner: apt-get install rsync"
. ../common/wordpress-parts.sh
[ "${#parts[@]}" -gt 0 ] || die "the checkout has no wp-content/themes/NAME or wp-content/plugins/NAME"
umask 022
for site in "${sites[@]}"; do
	old=$site/wp-content/.slipway
	saved=$old/${SLIPWAY_DEPLOYMENT_ID:?}
	if [ "${DRY_RUN:-no}" != yes ]; then
		rm -rf -- "$saved" "$old/new"
		mkdir -p -- "$saved"
	fi
	for part in "${parts[@]}"; do
		end=
		[ ! -d "$part" ] || end=/
		if [ "${DRY_RUN:-no}" = yes ]; then
			rsync -a --dry-run --checksum --delete --itemize-changes -- "$part$end" "$site/$part$end"
			continue
		fi
		mkdir -p -- "$old/new/${part%/*}" "$saved/${part%/*}" "$site/${part%/*}"
		rsync -a --delete --chmod=u+rwX,go+rX,go-w -- "$part$end" "$old/new/$part$end"
		if [ -e "$site/$part" ] || [ -L "$site/$part" ]; then
			mv -T -- "$site/$part" "$saved/$part"
		else
			printf '%s\n' "$part" >>"$saved/new"
		fi
		mv -T -- "$old/new/$part" "$site/$part"
		echo "$site: $part"
	done
done
