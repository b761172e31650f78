# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Builds the project, depending on the files found in the checkout.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is not installed on the runner: apt-get install $2"; }

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
git log -1 --oneline
