#!/bin/bash
# SPDX-License-Identifier: ISC
# Runs a command with TMPDIR in memory: a tmpfs in a mount namespace of its own, which
# ends with the command.  The data of the tests' MariaDB servers are there.  What the
# command leaves, as a failed test does, is then found under the same path on disk.
# Without root, plenty of memory or mount namespaces, the command runs as it is.
set -euo pipefail
plenty=$((6 << 20)) # KiB

available=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
if [ "$(id -u)" != 0 ] || [ "${available:-0}" -lt $plenty ] ||
    ! unshare --mount --propagation private true 2>/dev/null; then
	exec "$@"
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/slipway-XXXX")
chmod 0755 "$dir"
mkdir "$dir/m" "$dir/disk"
status=0
# shellcheck disable=SC2016 # the inner shell expands these
unshare --mount --propagation private bash -c '
	dir=$0
	if mount --bind "$dir/m" "$dir/disk" &&
	    mount -t tmpfs -o size=4g,mode=1777 none "$dir/m"; then
		export TMPDIR=$dir/m
	fi
	status=0
	"$@" || status=$?
	if [ -n "${TMPDIR-}" ] && [ "$TMPDIR" = "$dir/m" ]; then
		rm -rf "$dir"/m/slipway-t-template-*
		find "$dir/m" -mindepth 1 -maxdepth 1 -exec cp -a {} "$dir/disk" \;
	fi
	exit $status' "$dir" "$@" || status=$?
rmdir "$dir/m" "$dir/disk" "$dir" 2>/dev/null || :
exit $status
