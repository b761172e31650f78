/* SPDX-License-Identifier: ISC */
#include "access/moved.h"

#include <strings.h>

#include "core/log.h"
#include "core/str.h"

const char *
moved_address(const struct forge *forge, struct arena *a,
    const char *repository, const char *path)
{
	struct forge_repo was;
	const char *fresh;

	if (forge_repo_of(forge, a, repository, &was) != NULL ||
	    strcasecmp(was.path, path) == 0 ||
	    forge_repo_at(forge, a, repository, path, &fresh) != NULL)
		return repository;
	return fresh;
}

const struct err *
moved_follow(const struct access *x, struct arena *a,
    const struct git_repo *repo, const struct git_follower *by)
{
	const char *address = moved_address(x->forge, a, repo->repository,
	    repo->path);

	if (str_eq(address, repo->repository))
		return NULL;
	log_info("project %lld: its repository %s is now %s",
	    (long long)repo->project_id, repo->repository, address);
	return gitrepo_follow(x->db, repo, address, by);
}
