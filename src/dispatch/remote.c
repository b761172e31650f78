/* SPDX-License-Identifier: ISC */
#include "dispatch/remote.h"

#include "access/moved.h"
#include "store/audit.h"
#include "store/gitrepo.h"

bool
remote_is_known(const struct forge *forge, struct arena *a,
    const char *repository)
{
	struct forge_repo repo;

	return forge != NULL && forge_has_api(forge) &&
	    forge_repo_of(forge, a, repository, &repo) == NULL;
}

const struct err *
remote_recall(const struct forge *forge, struct db *db, struct arena *a,
    const struct remote *remote, struct forge_repo *out)
{
	const struct err *e;
	struct git_repo row;

	if ((e = forge_repo_of(forge, a, remote->repository, out)) != NULL)
		return e;
	e = gitrepo_find(db, a, remote->project_id, forge_server(forge),
	    remote->repository, &row);
	if (e != NULL)
		return e->code == ERR_NOTFOUND ? NULL : e;
	out->id = row.repo_id;
	out->path = row.path;
	return NULL;
}

const struct err *
remote_store(const struct forge *forge, struct db *db,
    const struct remote *remote, const struct forge_repo *repo)
{
	const struct git_repo row = { .project_id = remote->project_id,
		.server = forge_server(forge),
		.repository = remote->repository,
		.repo_id = repo->id,
		.path = repo->path };

	return gitrepo_put(db, &row);
}

const struct err *
remote_follow(const struct access *x, struct arena *a,
    const struct remote *remote, const struct forge_repo *repo,
    const char *runner)
{
	const struct git_repo row = { .project_id = remote->project_id,
		.server = forge_server(x->forge),
		.repository = remote->repository,
		.repo_id = repo->id,
		.path = repo->path };
	const struct git_follower by = { .username = runner,
		.via = AUDIT_RUNNER };

	return moved_follow(x, a, &row, &by);
}
