# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Shows pending migrations and applies them.
set -euo pipefail

if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: migrating nothing"
	exit 0
fi
cd -- "${DEPLOY_ROOT:?}/releases/${SLIPWAY_DEPLOYMENT_ID:?}"
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
