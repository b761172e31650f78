# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Copies the checkout and creates its virtual environment in the final place: it
# would not work after a move.
set -euo pipefail
umask 022

die() { printf '%s\n' "$*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is not installed on the runner: apt-get install $2"; }

[[ ${DEPLOY_ROOT:?set DEPLOY_ROOT, for example /srv/www/example.org} =~ ^/[^/]+/[^/]+ ]] ||
	die "DEPLOY_ROOT must be an absolute path below a top directory, such as /srv/www/example.org"
[[ $DEPLOY_ROOT != *..* ]] || die "DEPLOY_ROOT must not contain .."
[[ $DEPLOY_ROOT/ != "${SLIPWAY_WORKSPACE:?}"/* ]] ||
	die "DEPLOY_ROOT must not be in the checkout, which is cleaned each time"
release=$DEPLOY_ROOT/releases/${SLIPWAY_DEPLOYMENT_ID:?}
need rsync rsync
need python3 python3
python3 -c 'import ensurepip' 2>/dev/null ||
	die "python3 on the runner has no venv: apt-get install python3-venv"
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: would make $release"
	exit 0
fi
mkdir -p -- "$release"
rsync -a --exclude=/.git --chmod=u+rwX,go+rX,go-w -- ./ "$release/"
cd -- "$release"
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
