# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# A step can never become root.  The project needs a separate account
# ([run_as] of slipway.conf) and a rule in /etc/polkit-1/rules.d/50-slipway.rules:
#	polkit.addRule(function (action, subject) {
#		if (action.id == "org.freedesktop.systemd1.manage-units" &&
#		    ["a.service", "b.service"].includes(action.lookup("unit")) &&
#		    ["restart", "reload"].includes(action.lookup("verb")) &&
#		    subject.user == "ACCOUNT")
#			return polkit.Result.YES;
#	});
set -euo pipefail

. ../common/die.sh

. ../common/list.sh
. ../common/services.sh
case ${ACTION:-reload} in
reload | restart | reload-or-restart) ;;
*) die "ACTION must be reload, restart or reload-or-restart" ;;
esac
for service in "${services[@]}"; do
	if [ "${DRY_RUN:-no}" = yes ]; then
		echo "dry run: systemctl ${ACTION:-reload} $service"
	else
		systemctl --no-ask-password "${ACTION:-reload}" -- "$service"
		echo "${ACTION:-reload}: $service"
	fi
done
