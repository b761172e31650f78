# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Copies the files into a new release, which is not current yet.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/ssh.sh
source=${SOURCE_DIR:-.}
. ../common/source-path.sh
for host in "${hosts[@]}"; do
	if [ "${DRY_RUN:-no}" = yes ]; then
		echo "dry run: $source would be copied to $host:$REMOTE_DIR/releases/$id"
		continue
	fi
	"${ssh[@]}" -- "$host" "mkdir -p -- '$REMOTE_DIR/releases/$id'"
	rsync -az --exclude=/.git --chmod=u+rwX,go+rX,go-w -e "${ssh[*]@Q}" -- \
		"./$source/" "$host:$REMOTE_DIR/releases/$id/"
	echo "$host: copied"
done
