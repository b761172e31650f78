# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Requires a program on the runner.

need() { command -v "$1" >/dev/null || die "$1 is not installed on the runner: apt-get install $2"; }
