# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Removes the oldest releases beyond KEEP_RELEASES; never current or previous.
set -euo pipefail

. ../common/die.sh
. ../common/need.sh

. ../common/ssh.sh
keep=${KEEP_RELEASES:-5}
[[ $keep =~ ^[1-9][0-9]{0,2}$ ]] || die "KEEP_RELEASES must be 1..999"
[ "${DRY_RUN:-no}" != yes ] || exit 0
for host in "${hosts[@]}"; do
	"${ssh[@]}" -- "$host" bash -s -- "$REMOTE_DIR" "$keep" <<'REMOTE'
set -euo pipefail
cd -- "$1"
find releases -mindepth 1 -maxdepth 1 -type d -regex 'releases/[0-9]+' -printf '%f\n' |
	sort -rn | tail -n "+$(($2 + 1))" |
	while read -r old; do
		case releases/$old in
		"$(readlink -- current || true)" | "$(readlink -- previous || true)") ;;
		*) rm -rf -- "releases/$old" ;;
		esac
	done
REMOTE
done
