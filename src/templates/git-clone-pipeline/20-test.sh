# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs the tests, depending on the files found in the checkout.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is not installed on the runner: apt-get install $2"; }

if [ -f package.json ]; then
	need npm npm
	npm test --if-present
elif [ -f Makefile ] && make -n test >/dev/null 2>&1; then
	make test
elif [ -f Makefile ] && make -n check >/dev/null 2>&1; then
	make check
elif [ -x vendor/bin/phpunit ]; then
	vendor/bin/phpunit
elif [ -d tests ] && [ -x .venv/bin/python ]; then
	.venv/bin/python -m unittest discover tests
else
	echo "found no tests"
fi
