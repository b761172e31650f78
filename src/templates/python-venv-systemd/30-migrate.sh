# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Shows pending migrations and applies them.
set -euo pipefail

. ../common/enter-release.sh

enter_release "migrating nothing"
case ${MIGRATE:-none} in
none) echo "nothing to migrate" ;;
django)
	venv/bin/python manage.py showmigrations --plan
	venv/bin/python manage.py migrate --no-input ;;
alembic)
	venv/bin/alembic current
	venv/bin/alembic upgrade head ;;
*) echo "MIGRATE must be none, django or alembic" >&2; exit 1 ;;
esac
