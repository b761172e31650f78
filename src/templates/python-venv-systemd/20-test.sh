# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs the tests in the release, with its packages.
set -euo pipefail

if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: nothing to test"
	exit 0
fi
cd -- "${DEPLOY_ROOT:?}/releases/${SLIPWAY_DEPLOYMENT_ID:?}"
case ${TESTS:-none} in
none) echo "no tests requested" ;;
unittest) venv/bin/python -m unittest discover ;;
pytest) venv/bin/python -m pytest ;;
*) echo "TESTS must be none, unittest or pytest" >&2; exit 1 ;;
esac
