# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Builds with what the checkout contains.

if [ -f package.json ]; then
	need npm npm
	npm run build --if-present
elif [ -f Makefile ]; then
	need make make
	make
elif [ -f build.sh ]; then
	bash ./build.sh
else
	echo "nothing to build"
fi
