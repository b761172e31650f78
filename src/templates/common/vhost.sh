# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Validates the file and its directory.

[[ ${VHOST:?choose a file} =~ ^[A-Za-z0-9_-][A-Za-z0-9._-]*$ ]] || die "VHOST must be a file name"
[[ ${VHOST_DIR:?} =~ ^/[^/]+/[^/]+ && $VHOST_DIR != *..* ]] || die "VHOST_DIR must be an absolute path"
