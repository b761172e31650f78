# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs the tests, depending on the files found in the checkout: all that apply.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

tested=no
if [ -f package.json ]; then
	need npm npm
	npm test --if-present
	tested=yes
fi
if [ -f Makefile ] && make -n test >/dev/null 2>&1; then
	make test
	tested=yes
elif [ -f Makefile ] && make -n check >/dev/null 2>&1; then
	make check
	tested=yes
fi
if [ -x vendor/bin/phpunit ]; then
	vendor/bin/phpunit
	tested=yes
fi
# The directory tests may be that of another language.
if [ -x .venv/bin/python ] && [ -d tests ] && [ -n "$(find tests -name '*test*.py' -print -quit)" ]; then
	if .venv/bin/python -c 'import pytest' 2>/dev/null; then
		.venv/bin/python -m pytest tests
	else
		.venv/bin/python -m unittest discover tests
	fi
	tested=yes
fi
[ "$tested" = yes ] || echo "found no tests"
