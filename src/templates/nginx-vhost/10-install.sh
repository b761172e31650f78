# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# A step can never become root.  So nginx includes a directory that this
# project may write (include /srv/nginx/*.conf; inside of http {}), and systemd
# tests and reloads when RELOAD_TRIGGER changes.
# /etc/systemd/system/slipway-nginx.path:
#	[Path]
#	PathModified=/srv/nginx/reload
#	[Install]
#	WantedBy=multi-user.target
# /etc/systemd/system/slipway-nginx.service:
#	[Service]
#	Type=oneshot
#	RuntimeDirectory=slipway-nginx
#	RuntimeDirectoryPreserve=yes
#	ExecStart=/bin/sh -c 'id=$$(head -c 40 /srv/nginx/reload | tr -dc 0-9a-z-); cd /run/slipway-nginx; \
#	    if nginx -t 2>log && systemctl reload nginx; then echo "$$id ok"; else echo "$$id failed"; fi >new; mv new result'
# RELOAD_RESULT is then /run/slipway-nginx/result.  Any account that can write to
# the included directory controls nginx, which starts as root: use this only for
# repositories that you trust that far.  Without RELOAD_TRIGGER, nginx runs under
# this project's own account (NGINX_CONF).
set -euo pipefail
umask 022

. ../common/die.sh

. ../common/vhost.sh
. ../common/is-trigger.sh
. ../common/reload-nginx.sh
source=nginx/$VHOST
target=$VHOST_DIR/$VHOST
if [ -L nginx ] || [ -L "$source" ]; then
	die "$source is a symbolic link: commit the file itself"
fi
[ -f "$source" ] || die "the checkout has no file $source"
[ -d "$VHOST_DIR" ] || die "the directory $VHOST_DIR does not exist on the runner"
diff -u -- "$target" "$source" || true
if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: $target is unchanged"
	exit 0
fi
rm -f -- "$target.previous"
if [ -e "$target" ]; then cp -p -- "$target" "$target.previous"; fi
printf '%s\n' "${SLIPWAY_DEPLOYMENT_ID:?}" >"$target.deployment"
install -m 644 -- "$source" "$target.new"
mv -T -- "$target.new" "$target"
reload "$SLIPWAY_DEPLOYMENT_ID" || die "nginx rejected the configuration: see above"
echo "nginx loaded $target"
