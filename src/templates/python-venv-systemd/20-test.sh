# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs the tests in the release, with its packages.
set -euo pipefail

. ../common/enter-release.sh

enter_release "nothing to test"
case ${TESTS:-none} in
none) echo "no tests requested" ;;
unittest) venv/bin/python -m unittest discover ;;
pytest) venv/bin/python -m pytest ;;
*) echo "TESTS must be none, unittest or pytest" >&2; exit 1 ;;
esac
