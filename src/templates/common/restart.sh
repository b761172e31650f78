# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Restarts the service with the new release.  A step can never become root, so
# systemd does it, in one of two ways.  (Replace NAME by the service.)
#
# RELOAD_TRIGGER is a file that systemd watches, in a directory that this
# project may write.  /etc/systemd/system/NAME-restart.path:
#	[Path]
#	PathModified=/srv/NAME/restart
#	[Install]
#	WantedBy=multi-user.target
# and /etc/systemd/system/NAME-restart.service:
#	[Service]
#	Type=oneshot
#	ExecStart=/usr/bin/systemctl reload-or-restart NAME.service
#
# SERVICE requires a separate account for the project ([run_as] of
# slipway.conf) and a rule in /etc/polkit-1/rules.d/50-NAME.rules:
#	polkit.addRule(function (action, subject) {
#		if (action.id == "org.freedesktop.systemd1.manage-units" &&
#		    action.lookup("unit") == "NAME.service" &&
#		    action.lookup("verb") == "reload-or-restart" &&
#		    subject.user == "ACCOUNT")
#			return polkit.Result.YES;
#	});
set -euo pipefail

. ../common/die.sh
. ../common/is-trigger.sh

if [ "${DRY_RUN:-no}" = yes ]; then
	echo "dry run: restarting nothing"
elif [ -n "${RELOAD_TRIGGER:-}" ]; then
	[[ $RELOAD_TRIGGER == /* ]] || die "RELOAD_TRIGGER must be an absolute path"
	is_trigger || die "$RELOAD_TRIGGER is not a trigger file: choose another file"
	printf '%s\n' "${SLIPWAY_DEPLOYMENT_ID:?}" >"$RELOAD_TRIGGER"
	echo "wrote $RELOAD_TRIGGER"
elif [ -n "${SERVICE:-}" ]; then
	command -v systemctl >/dev/null || die "systemctl is not installed on the runner: set RELOAD_TRIGGER"
	[[ $SERVICE =~ ^[A-Za-z0-9][A-Za-z0-9@:._-]*$ ]] || die "SERVICE must be the name of one service"
	systemctl --no-ask-password reload-or-restart -- "$SERVICE"
	echo "restarted $SERVICE"
else
	echo "neither RELOAD_TRIGGER nor SERVICE is set: nothing to restart"
fi
