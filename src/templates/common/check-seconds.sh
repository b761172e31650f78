# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2034
# How long a check retries.

seconds=${CHECK_SECONDS:-60}
[[ $seconds =~ ^[1-9][0-9]{0,3}$ ]] || die "CHECK_SECONDS must be 1..9999"
