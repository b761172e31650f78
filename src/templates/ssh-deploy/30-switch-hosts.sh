# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Switches host after host, each in one rename, and runs REMOTE_SCRIPT there.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/ssh.sh
script=${REMOTE_SCRIPT:-}
[[ $script =~ ^[A-Za-z0-9._/-]*$ && $script != /* && $script != *..* ]] || die "REMOTE_SCRIPT must be a file of the release"
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: switching nothing"
	exit 0
fi
for host in "${hosts[@]}"; do
	"${ssh[@]}" -- "$host" bash -s -- "$REMOTE_DIR" "$id" "$script" <<'REMOTE'
set -euo pipefail
cd -- "$1"
[ ! -e current ] || [ -L current ] || { echo "$1/current is not a symbolic link" >&2; exit 1; }
. ../common/keep-previous.sh
ln -s -- "releases/$2" current.new
mv -T -- current.new current
if [ -n "${3:-}" ]; then
	cd -- current
	bash -- "$3" </dev/null
fi
REMOTE
	echo "$host: switched"
done
