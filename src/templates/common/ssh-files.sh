# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Checks that the files that ssh needs can be read.

[ -r "$SSH_KEY_FILE" ] || die "$SSH_KEY_FILE cannot be read by $(id -un)"
[ -r "$KNOWN_HOSTS" ] || die "$KNOWN_HOSTS cannot be read: ssh-keyscan prints its lines"
