# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2154
# Copies the site in the directory source into a new release.

[ -d "$source" ] || die "the checkout has no directory $source"
index=
for page in index.html index.htm index.xhtml index.shtml; do
	[ ! -f "$source/$page" ] || [ ! -s "$source/$page" ] || index=${index:-$source/$page}
done
[ -n "$index" ] || die "$source contains no index page: check SOURCE_DIR, and whether the build has its theme"
! head -c 64 -- "$index" | grep -q '^version https://git-lfs' ||
	die "$index is a pointer of Git LFS: its file was not fetched"
options=(-a --exclude=/.git "--chmod=u+rwX,go+rX,go-w")
if [ "${DRY_RUN:-no}" = yes ]; then
	[ -d "$DEPLOY_ROOT/current" ] || { echo "dry run: this would be the first release"; exit 0; }
	rsync "${options[@]}" --dry-run --checksum --delete --itemize-changes -- \
		"./$source/" "$DEPLOY_ROOT/current/"
	exit 0
fi
claim_release mkdir --
rsync "${options[@]}" -- "./$source/" "$release/"
echo "copied $(find "$release" -type f | wc -l) files to $release"
