# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Switches host after host, each in one rename, and runs REMOTE_SCRIPT there.  A
# rollback to the release that is current changes no link.
#
# PHP-FPM caches scripts by their path, and a link hides that the files behind
# it have changed.  Let nginx pass $realpath_root instead of $document_root, so
# that the path of a script contains its release, and reload PHP-FPM after the
# switch, for example in REMOTE_SCRIPT.
# slipway-templates(7) explains both.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/list.sh
. ../common/ssh.sh
. ../common/remote-script.sh
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: switching nothing"
	exit 0
fi
for host in "${hosts[@]}"; do
	grep -qsxF -- "$host" "$HOME/.slipway-hosts" || die "$host: the release was made by another deployment"
	"${ssh[@]}" -- "$host" bash -s -- "$REMOTE_DIR" "$id" "$script" <<'REMOTE'
set -euo pipefail
. ../common/switch-link.sh
cd -- "$1"
[ ! -e current ] || [ -L current ] || { echo "$1/current is not a symbolic link" >&2; exit 1; }
switch_link "$2"
script=${3:-}
. ../common/run-script.sh
REMOTE
	echo "$host: switched"
done
