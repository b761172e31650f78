# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Copies the checkout and creates its virtual environment in the final place: it
# would not work after a move.
set -euo pipefail
umask 022

. ../common/die.sh
. ../common/need.sh

. ../common/release-path.sh
. ../common/reuse-release.sh
need rsync rsync
need python3 python3
python3 -c 'import ensurepip' 2>/dev/null ||
	die "python3 on the runner has no venv: apt-get install python3-venv"
. ../common/make-release.sh
python3 -m venv venv
if [ -f requirements.txt ]; then
	venv/bin/python -m pip install --disable-pip-version-check --no-input -r requirements.txt
elif [ -f pyproject.toml ]; then
	venv/bin/python -m pip install --disable-pip-version-check --no-input .
else
	echo "neither requirements.txt nor pyproject.toml: no packages to install"
fi
venv/bin/python -m pip check
venv/bin/python --version
