# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Installs packages, depending on the files found in the checkout.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

found=no
if [ -f package-lock.json ]; then
	need npm npm
	npm ci --no-audit --no-fund
	found=yes
elif [ -f package.json ]; then
	need npm npm
	npm install --no-audit --no-fund
	found=yes
fi
if [ -f composer.json ]; then
	need composer composer
	composer install --no-interaction --no-progress
	found=yes
fi
if [ -f requirements.txt ]; then
	need python3 python3-venv
	python3 -m venv .venv
	.venv/bin/python -m pip install --disable-pip-version-check --no-input -r requirements.txt
	found=yes
fi
[ "$found" = yes ] || echo "nothing to install"
