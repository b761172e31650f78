# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Copies the files into a new release, which is not current yet.  A rollback uses
# the release of the deployment that it repeats on each host that still has it.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/list.sh
. ../common/ssh.sh
source=${SOURCE_DIR:-.}
. ../common/source-path.sh
to=${SLIPWAY_ROLLBACK_TO:-}
[[ $to =~ ^[0-9]*$ ]] || die "SLIPWAY_ROLLBACK_TO must be a number"
for host in "${hosts[@]}"; do
	if [ "${DRY_RUN:-no}" = yes ]; then
		echo "dry run: $source would be copied to $host:$REMOTE_DIR/releases/$id"
		continue
	fi
	# A directory that exists belongs to another deployment: after a restore of
	# the database, ids are given again.
	how=$("${ssh[@]}" -- "$host" bash -s -- "$REMOTE_DIR" "$id" "${SLIPWAY_COMMIT:--}" "$to" <<'REMOTE'
set -euo pipefail
mkdir -p -- "$1/releases"
cd -- "$1/releases"
if [ -e "$2" ] || [ -L "$2" ]; then
	echo exists
	exit 0
fi
to=${4:-}
if [ -n "$to" ] && [ -d "$to" ] && { [ ! -f ".$to" ] || [ "$(cat -- ".$to")" = "$3" ]; }; then
	ln -s -T -- "$to" "$2"
	echo used
else
	mkdir -- "$2"
	echo made
fi
printf '%s\n' "$3" >".$2"
REMOTE
	) || die "$host: cannot make $REMOTE_DIR/releases/$id"
	[ "$how" != exists ] ||
		die "$host: $REMOTE_DIR/releases/$id belongs to another deployment, which may be live:" \
			"its id was given before.  If the database was restored, run slipway-admin skip-ids; see" \
			"slipway-admin(8)"
	printf '%s\n' "$host" >>"$HOME/.slipway-hosts" # where the step Roll back may remove it
	if [ "$how" = used ]; then
		echo "$host: releases/$to is still there and is used as it is"
		continue
	fi
	rsync -az --exclude=/.git --chmod=u+rwX,go+rX,go-w -e "${ssh[*]@Q}" -- \
		"./$source/" "$host:$REMOTE_DIR/releases/$id/"
	echo "$host: copied"
done
