# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Builds with what the checkout contains: everything that applies.

built=no
if [ -f package.json ]; then
	need npm npm
	npm run build --if-present
	built=yes
fi
if [ -f Makefile ]; then
	need make make
	make
	built=yes
fi
if [ -f build.sh ]; then
	bash ./build.sh
	built=yes
fi
[ "$built" = yes ] || echo "nothing to build"
