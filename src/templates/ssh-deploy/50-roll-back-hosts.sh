# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Runs if a step above failed: switches the changed hosts back.
set -euo pipefail

die() { printf '%s\n' "$*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is not installed on the runner: apt-get install $2"; }

need ssh openssh-client
id -un >/dev/null 2>&1 ||
	die "ssh needs a named account: set one for the project ([run_as] of slipway.conf)"
[[ ${REMOTE_DIR:?} =~ ^/[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$ ]] ||
	die "REMOTE_DIR must be an absolute path such as /srv/www/example.org"
id=${SLIPWAY_DEPLOYMENT_ID:?}
[[ $id =~ ^[0-9]+$ ]] || die "no deployment id"
IFS=, read -r -a hosts <<<"${HOSTS:?choose at least one host}"
for host in "${hosts[@]}"; do
	[[ $host =~ ^([A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*$ ]] || die "$host is not a valid host"
done
[[ ${KNOWN_HOSTS:?} =~ ^/[^[:space:]]+$ && ${SSH_KEY_FILE:?} =~ ^/[^[:space:]]+$ ]] ||
	die "KNOWN_HOSTS and SSH_KEY_FILE must be absolute paths without blanks"
ssh=(ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=10 -o IdentitiesOnly=yes
	-o "UserKnownHostsFile=$KNOWN_HOSTS" -i "$SSH_KEY_FILE")
[[ -z ${SSH_PORT:-} || $SSH_PORT =~ ^[1-9][0-9]{0,4}$ ]] || die "SSH_PORT must be a port number"
[ -z "${SSH_PORT:-}" ] || ssh+=(-p "$SSH_PORT")
[ "${DRY_RUN:-no}" != yes ] || exit 0
failed=no
for host in "${hosts[@]}"; do
	if "${ssh[@]}" -- "$host" bash -s -- "$REMOTE_DIR" "$id" <<'REMOTE'
set -euo pipefail
cd -- "$1"
if [ "$(readlink -- current || true)" = "releases/$2" ]; then
	[ -d previous ] || { echo "no previous release: keeping the new one"; exit 0; }
	mv -T -- previous current
fi
rm -rf -- "releases/$2"
REMOTE
	then
		echo "$host: rolled back"
	else
		echo "$host: could not be rolled back" >&2
		failed=yes
	fi
done
[ "$failed" = no ]
