# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Copies the files into a new release, which is not current yet.  A rollback uses
# the release of the deployment that it repeats on each host that still has it.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

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
	if [ -n "$to" ] && "${ssh[@]}" -- "$host" \
		"cd -- '$REMOTE_DIR/releases' && test -d $to && ln -sfn -- $to $id" 2>/dev/null; then
		echo "$host: releases/$to is still there and is used as it is"
		continue
	fi
	"${ssh[@]}" -- "$host" "mkdir -p -- '$REMOTE_DIR/releases/$id'"
	rsync -az --exclude=/.git --chmod=u+rwX,go+rX,go-w -e "${ssh[*]@Q}" -- \
		"./$source/" "$host:$REMOTE_DIR/releases/$id/"
	echo "$host: copied"
done
