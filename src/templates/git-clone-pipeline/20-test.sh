# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs the tests, depending on the files found in the checkout.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

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
