# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2154
# Copies the site in the directory source into a new release.

[ -d "$source" ] || die "the checkout has no directory $source"
[ -n "$(find "./$source" -maxdepth 1 -name 'index.*' -print -quit)" ] ||
	die "$source contains no index page: check SOURCE_DIR"
options=(-a --exclude=/.git "--chmod=u+rwX,go+rX,go-w")
if [ "${DRY_RUN:-no}" = yes ]; then
	[ -d "$DEPLOY_ROOT/current" ] || { echo "dry run: this would be the first release"; exit 0; }
	rsync "${options[@]}" --dry-run --checksum --delete --itemize-changes -- \
		"./$source/" "$DEPLOY_ROOT/current/"
	exit 0
fi
mkdir -p -- "$release"
rsync "${options[@]}" -- "./$source/" "$release/"
echo "copied $(find "$release" -type f | wc -l) files to $release"
