# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that every host is known and reachable, and lists its releases.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/list.sh
. ../common/ssh.sh
. ../common/ssh-files.sh
for host in "${hosts[@]}"; do
	echo "$host:"
	"${ssh[@]}" -- "$host" bash -s -- "$REMOTE_DIR" <<'REMOTE' ||
set -euo pipefail
cd -- "$1"
[ -L current ] || { echo "$1 has no release: current is missing" >&2; exit 1; }
ls -ltd -- releases/*
echo "current:  $(readlink -- current)"
echo "previous: $(readlink -- previous || echo none)"
REMOTE
		die "$host: unreachable, unknown, or without a release in $REMOTE_DIR"
done
