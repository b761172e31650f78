/* SPDX-License-Identifier: ISC */
/* slipway auth: signing in with a browser or an API token. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/device.h"
#include "cli/prompt.h"
#include "cli/slipway.h"
#include "core/file.h"
#include "core/str.h"

#define TOKEN_MAX ((size_t)4096)

struct user {
	const char *username;
	const char *role;
};
static const struct json_path user_paths[] = {
	JSON_PATH(struct user, username, "username", .must = true),
	JSON_PATH(struct user, role, "role", .must = true),
	JSON_PATH_END,
};

/* Reads the token from standard input: its first line. */
static const struct err *
token_read(struct client *c, const char **out)
{
	const struct err *e;
	struct buf text;

	*out = NULL;
	if (isatty(STDIN_FILENO))
		return prompt_secret(c->a, "Token", out);
	buf_init(&text, TOKEN_MAX);
	if ((e = file_rest(STDIN_FILENO, &text)) != NULL)
		e = err_wrap(e, "standard input");
	else if (text.len == 0 || strcspn(text.data, "\r\n") == 0)
		e = err_public(ERR_METHOD,
		    "standard input contains no token: write it there, for "
		    "example \"slipway auth login --with-token <FILE\"");
	else
		*out = arena_strndup(c->a, text.data,
		    strcspn(text.data, "\r\n"));
	buf_wipe(&text);
	return e;
}

/* The URL to sign in to: the argument, else the one in use. */
static const struct err *
login_host(struct client *c, const char *url, struct host *out)
{
	const struct client_settings *settings = c->call->settings;

	*out = (struct host){ .url = NULL };
	if (url == NULL)
		return host_choose(c->a, settings->host, out);
	return host_url(c->a,
	    strstr(url, "://") != NULL ? url :
					 arena_printf(c->a, "https://%s", url),
	    &out->url);
}

static const struct err *
user_get(struct client *c, struct user *out, struct http_response *r)
{
	*out = (struct user){ .username = NULL };
	return client_object(c, "/api/auth/info", user_paths, out, r);
}

/* Signs in with a browser unless the options name another way. */
static const struct err *
options_check(const struct auth_options *o)
{
	if (o->with_token + (o->token_command != NULL) + o->browser > 1)
		return err_public(ERR_METHOD,
		    "auth login: give only one of --with-token, "
		    "--token-command and --browser");
	if (o->with_token || o->token_command != NULL || o->browser ||
	    (isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0))
		return NULL;
	return err_public(ERR_METHOD,
	    "auth login: there is no terminal to show a code; give "
	    "--with-token, with the token on standard input, or "
	    "--token-command");
}

/* Gets the token for the service in c->host as the options say. */
static const struct err *
token_get(struct client *c, const struct auth_options *o)
{
	if (o->with_token)
		return token_read(c, &c->host.token);
	if (o->token_command != NULL)
		return NULL;
	return device_sign_in(c, o->browser ? DEVICE_BROWSER : 0,
	    &c->host.token);
}

const struct err *
slipway_login(void *context, struct command_call *call)
{
	const struct auth_options *options = call->options;
	struct client *c = context;
	struct http_response r;
	struct host host;
	struct user user;
	const struct err *e;

	if ((e = options_check(options)) != NULL ||
	    (e = login_host(c, call->word[0], &host)) != NULL)
		return e;
	host.token = NULL;
	host.token_command = options->token_command;
	if (options->cacert != NULL)
		host.cacert = options->cacert;
	if (host.cacert != NULL && *host.cacert != '/')
		return err_public(ERR_METHOD,
		    "auth login: --cacert requires an absolute path");
	c->host = host;
	if ((e = token_get(c, options)) != NULL)
		return e;
	host.token = c->host.token;
	if ((e = user_get(c, &user, &r)) != NULL ||
	    (e = host_save(c->a, &host)) != NULL)
		return e;
	(void)printf("signed in to %s as %s (%s)\n", host.url,
	    str_visible(c->a, user.username), str_visible(c->a, user.role));
	return NULL;
}

const struct err *
slipway_auth_status(void *context, struct command_call *call)
{
	struct client *c = context;
	struct http_response r;
	struct user user;
	const struct err *e;

	(void)call;
	if ((e = client_sign_in(c)) != NULL)
		return e;
	if ((e = user_get(c, &user, &r)) != NULL)
		return err_wrap(e, "%s", c->host.url);
	if (c->json)
		client_print(&r);
	else
		(void)printf("%s\t%s\t%s\n", c->host.url,
		    str_visible(c->a, user.username),
		    str_visible(c->a, user.role));
	return NULL;
}

const struct err *
slipway_logout(void *context, struct command_call *call)
{
	const struct client_settings *settings = call->settings;
	struct client *c = context;
	struct host host;
	const struct err *e;

	if ((e = host_choose(c->a,
		 call->word[0] != NULL ? call->word[0] : settings->host,
		 &host)) != NULL ||
	    (e = host_remove(c->a, host.url)) != NULL)
		return e;
	(void)printf("removed the token for %s; it stays valid until it is "
		     "deleted there\n",
	    host.url);
	return NULL;
}
