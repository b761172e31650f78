/* SPDX-License-Identifier: ISC */
#include "core/git.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/str.h"

#define SSH_CONFIG "/etc/ssh/ssh_config"

const char *const git_settings[GIT_SETTINGS] = {
	"protocol.allow=never",
	"protocol.https.allow=always",
	"protocol.ssh.allow=always",
	"http.followRedirects=false",
	/* a server that computes a pack sends a byte every five seconds */
	"http.lowSpeedLimit=1",
	"http.lowSpeedTime=60",
	"credential.helper=",
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.untrackedCache=false",
	"core.pager=cat",
	"submodule.recurse=false",
	"fetch.recurseSubmodules=false",
	"transfer.fsckObjects=true",
	/* Histories have these, and every git clones them: odd headers of
	 * commits and tags change only what is shown, and git itself checks
	 * the paths of the tree that it checks out. */
	"fetch.fsck.badDate=ignore",
	"fetch.fsck.badDateOverflow=ignore",
	"fetch.fsck.badEmail=ignore",
	"fetch.fsck.badFilemode=ignore",
	"fetch.fsck.badName=ignore",
	"fetch.fsck.badTagName=ignore",
	"fetch.fsck.badTimezone=ignore",
	"fetch.fsck.duplicateEntries=ignore",
	"fetch.fsck.missingAuthor=ignore",
	"fetch.fsck.missingCommitter=ignore",
	"fetch.fsck.missingEmail=ignore",
	"fetch.fsck.missingNameBeforeEmail=ignore",
	"fetch.fsck.missingSpaceBeforeDate=ignore",
	"fetch.fsck.missingSpaceBeforeEmail=ignore",
	"fetch.fsck.missingTaggerEntry=ignore",
	"fetch.fsck.multipleAuthors=ignore",
	"fetch.fsck.nulInCommit=ignore",
	"fetch.fsck.nullSha1=ignore",
	"fetch.fsck.treeNotSorted=ignore",
	"fetch.fsck.zeroPaddedDate=ignore",
	"fetch.fsck.zeroPaddedFilemode=ignore",
	"gc.autoDetach=false",
	"maintenance.auto=false",
	"advice.detachedHead=false",
	"init.defaultBranch=none",
	"color.ui=false",
	"i18n.logOutputEncoding=UTF-8",
};

const char *const git_environment[GIT_ENVIRONMENT] = {
	"LANG=C.UTF-8",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_CONFIG_NOSYSTEM=1",
	"GIT_ATTR_NOSYSTEM=1",
	"GIT_OPTIONAL_LOCKS=0",
	"GIT_ADVICE=0",
};

#define SPECIAL "'\"\\`$%"

const char *
git_ssh_key_fault(const char *path)
{
	return str_has_control(path) || strpbrk(path, SPECIAL) != NULL ?
	    "must not contain control characters or any of " SPECIAL
	    ": ssh would read another path; rename the file" :
	    NULL;
}

const char *
git_known_hosts_fault(const char *path)
{
	return strchr(path, ' ') != NULL ?
	    "must not contain blanks: ssh would read several paths; rename "
	    "the file" :
	    git_ssh_key_fault(path);
}

/* Steps can write to the home directory of their account, and a configuration
 * there could run a program that reads the key.  So the command line names the
 * system's configuration, or none if that cannot be read. */
static const char *
ssh_config(void)
{
	return faccessat(AT_FDCWD, SSH_CONFIG, R_OK, AT_EACCESS) == 0 ?
	    SSH_CONFIG :
	    "none";
}

const char *
git_ssh_setting(struct arena *a, const struct git_ssh *ssh, const char *home)
{
	const char *out = arena_printf(a,
	    "core.sshCommand=ssh -oBatchMode=yes -oConnectTimeout=%d"
	    " -oServerAliveInterval=20",
	    ssh->timeout);

	if (ssh->key != NULL)
		out = arena_printf(a,
		    "%s -F %s -oIdentitiesOnly=yes -oIdentityAgent=none"
		    " -i \"%s%s\"",
		    out, ssh_config(), home, ssh->key);
	if (ssh->known_hosts != NULL)
		out = arena_printf(a, "%s -oUserKnownHostsFile=\"%s%s\"", out,
		    home, ssh->known_hosts);
	return out;
}
