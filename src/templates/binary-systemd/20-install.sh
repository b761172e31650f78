# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Installs the new file beside the old one, then renames it to replace the old
# one, which is kept as TARGET.previous.
set -euo pipefail
umask 022

. ../common/die.sh

. ../common/target.sh
[ -d "${TARGET%/*}" ] || die "the directory ${TARGET%/*} does not exist on the runner"
[ ! -d "$TARGET" ] || die "TARGET is a directory"
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: ${BINARY:?} would become $TARGET"
	exit 0
fi
install -m 755 -T -- "./${BINARY:?}" "$TARGET.new"
[ ! -e "$TARGET" ] || cp -p -- "$TARGET" "$TARGET.former"
# .previous changes only when nothing is left that needs room on the disk; a failed
# deployment restores it from .before.
[ ! -e "$TARGET.previous" ] || mv -T -- "$TARGET.previous" "$TARGET.before"
[ ! -e "$TARGET.former" ] || mv -T -- "$TARGET.former" "$TARGET.previous"
mv -T -- "$TARGET.new" "$TARGET"
printf '%s\n' "${SLIPWAY_DEPLOYMENT_ID:?}" >"$TARGET.deployment"
ls -l -- "$TARGET"
