# SPDX-License-Identifier: ISC
# shellcheck shell=bash disable=SC2034
# The hosts, and the command that reaches them.

need ssh openssh-client
id -un >/dev/null 2>&1 ||
	die "ssh needs a named account: set one for the project ([run_as] of slipway.conf)"
[[ ${REMOTE_DIR:?} =~ ^/[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$ ]] ||
	die "REMOTE_DIR must be an absolute path such as /srv/www/example.org"
id=${SLIPWAY_DEPLOYMENT_ID:?}
[[ $id =~ ^[0-9]+$ ]] || die "no deployment id"
hosts=()
read_list hosts "${HOSTS:?choose at least one host}"
for host in "${hosts[@]}"; do
	[[ $host =~ ^([A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*$ ]] || die "$host is not a valid host"
done
[[ ${KNOWN_HOSTS:?} =~ ^/[^[:space:]]+$ && ${SSH_KEY_FILE:?} =~ ^/[^[:space:]]+$ ]] ||
	die "KNOWN_HOSTS and SSH_KEY_FILE must be absolute paths without blanks"
ssh=(ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=10 -o IdentitiesOnly=yes
	-o "UserKnownHostsFile=$KNOWN_HOSTS" -i "$SSH_KEY_FILE")
[[ -z ${SSH_PORT:-} || $SSH_PORT =~ ^[1-9][0-9]{0,4}$ ]] || die "SSH_PORT must be a port number"
[ -z "${SSH_PORT:-}" ] || ssh+=(-p "$SSH_PORT")
