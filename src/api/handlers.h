/* SPDX-License-Identifier: ISC */
/* All handlers and judges, by file. See api/route.h. */
#ifndef SLIPWAY_API_HANDLERS_H
#define SLIPWAY_API_HANDLERS_H

#include "api/route.h"

/* projects.c */
route_handler api_project_list, api_project_show, api_project_create,
    api_project_change, api_project_remove, api_project_names;
route_judge api_project_judge;

/* pipelines.c */
route_handler api_pipeline_list, api_pipeline_show, api_pipeline_create,
    api_pipeline_change, api_pipeline_remove;
route_judge api_pipeline_judge;

/* steps.c */
route_handler api_step_list, api_step_show, api_step_create, api_step_change,
    api_step_remove;
route_judge api_step_judge;

/* users.c */
route_handler api_user_list, api_user_show, api_user_create, api_user_change,
    api_user_remove, api_user_search;
route_judge api_user_judge;

/* tokens.c */
route_handler api_token_list, api_token_create, api_token_show,
    api_token_remove, api_auth_info, api_auth_logout;
route_judge api_token_judge;

/* service.c */
route_handler api_service_health, api_service_metrics;

/* signin.c */
route_handler api_auth_url, api_auth_login;

/* git.c: what the Git server knows of a repository */
route_handler api_git_branches, api_git_commits;

/* forge.c */
/* ERR_UNAVAILABLE: `what` needs the first n of GITSERVER_URL, _CLIENT_ID and
 * _REDIRECT_URI; names those that are not set. */
MUSTCHECK const struct err *gitserver_missing(const struct req *,
    const char *what, size_t n);

/* openapi.c */
route_handler api_openapi_show;

/* deployments.c */
route_handler api_deployment_list, api_deployment_show, api_deployment_create,
    api_deployment_retry, api_deployment_cancel;
route_judge api_deployment_judge;

/* hooks.c */
route_handler api_hook_secret, api_hook_take;

/* log.c */
route_handler api_log_show;

/* templates.c */
route_handler api_template_list, api_template_show, api_template_use;
route_judge api_template_judge;

#endif
