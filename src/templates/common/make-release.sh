# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2154,SC2164
# Copies the checkout to the release and goes there.

if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: would make $release"
	exit 0
fi
claim_release mkdir --
rsync -a --exclude=/.git --chmod=u+rwX,go+rX,go-w -- ./ "$release/"
cd -- "$release"
