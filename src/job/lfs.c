/* SPDX-License-Identifier: ISC */
/*
 * The files of Git LFS.  git runs git-lfs(1) as its filter, writes the files
 * itself and compares them as usual.
 *
 * git-lfs runs in an empty repository in the home.  There it finds no .lfsconfig,
 * which could name another server, and what it writes, such as its hooks, is not
 * in the clone.  The address of its server follows from that of the repository
 * or submodule, and the objects are in the clone, for the next deployment.
 */
#include "job/lfs.h"

#include "core/log.h"
#include "core/tree.h"
#include "job/job.h"

#define HOME "slipway-lfs"

const char *const lfs_settings[LFS_SETTINGS] = {
	"filter.lfs.process=eval \"$SLIPWAY_LFS\"",
	"filter.lfs.required=true",
	/* its connection would outlive the command that needs it */
	"lfs.ssh.automultiplex=false",
	"lfs.transfer.maxRetries=3",
};

/* git names the filter in its message if it fails, so that only refers to this
 * command.  git-lfs reads the configuration as lines, to which an address must
 * not add one. */
void
lfs_environment(const struct job *job, const char *out[LFS_ENVIRONMENT])
{
	const char *url = job->spec.offline != NULL ?
	    "file:///dev/null" :
	    "$(git config remote.origin.url)";
	/* the server names the addresses of the objects */
	const char *tls = job->spec.allow_http ?
	    "" :
	    " -c lfs.transfer.enableHrefRewrite=true"
	    " -c url.https://.insteadOf=http://";

	out[0] = arena_printf(job->a,
	    "SLIPWAY_LFS=url=%s &&"
	    " case $url in *[[:cntrl:]]*) exit 1 ;; esac &&"
	    " git init --quiet --bare --template= \"$HOME/" HOME "\" &&"
	    " cd \"$HOME/" HOME "\" && unset GIT_DIR GIT_WORK_TREE &&"
	    " exec git -c \"remote.origin.url=$url\""
	    " -c \"lfs.storage=$SLIPWAY_LFS_STORAGE\"%s lfs filter-process",
	    url, tls);
	out[1] = arena_printf(job->a, "SLIPWAY_LFS_STORAGE=%s/.git/lfs",
	    job->place.workspace);
}

void
lfs_close(void)
{
	const struct err *e = tree_remove(JOB_FD(WIRE_FD_HOME), HOME);

	if (e != NULL)
		log_err(e, "remove " HOME);
}
