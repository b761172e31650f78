# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2034,SC2154
# What the checkout has for the sites: themes, plugins, must-use plugins and
# drop-ins, as directories or single files.

for dir in wp-content wp-content/{themes,plugins,mu-plugins}; do
	[ ! -L "$dir" ] || die "$dir is a symbolic link: commit the directory itself"
	for site in "${sites[@]}"; do
		[ ! -L "$site/$dir" ] || die "$site/$dir is a symbolic link: replace it by a directory"
	done
done
parts=()
while IFS= read -r -d '' part; do
	part=${part#./}
	[ "${part##*/}" != index.php ] || continue
	[ ! -L "$part" ] || die "$part is a symbolic link: commit the files themselves"
	[ -z "$(find "$part" -maxdepth 0 -empty)" ] ||
		die "$part is empty: if it is a submodule, the checkout must fetch it"
	parts+=("$part")
done < <(for dir in themes plugins mu-plugins; do
	[ ! -d "wp-content/$dir" ] || find "./wp-content/$dir" -mindepth 1 -maxdepth 1 \
		\( -type d -o -type l -o -name '*.php' \) ! -name '.*' -print0
done; [ ! -d wp-content ] || find ./wp-content -mindepth 1 -maxdepth 1 ! -type d -name '*.php' -print0)
