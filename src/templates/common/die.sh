# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Reports why a step fails.

die() { printf '%s\n' "$*" >&2; exit 1; }
