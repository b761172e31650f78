# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2034
# The script to run on each host after a switch.

script=${REMOTE_SCRIPT:-}
[[ $script =~ ^[A-Za-z0-9._/-]*$ && $script != /* && $script != *..* ]] || die "REMOTE_SCRIPT must be a file of the release"
