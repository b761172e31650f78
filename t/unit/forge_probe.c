/* SPDX-License-Identifier: ISC */
/* Sends one request to a Git server: forge_probe CONF WHAT [ARGUMENT…].
 * Prints each member of the result as a line NAME<tab>VALUE; prints an error
 * as "error CODE NUMBER TEXT" and exits with status 1.
 *
 * Without arguments, it reads such commands, the number of words and the words,
 * each with a NUL byte after it.  It runs each in a child process, and prints a
 * NUL byte, the exit status and a newline after its output and its errors, because
 * a short program spends most of its time on starting. */
#include <sys/wait.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/num.h"
#include "core/str.h"
#include "forge/forge.h"
#include "forge/hook.h"
#include "http/http.h"
#include "probe.h"

#define ARGS 8

static struct arena *a;
static struct settings settings;
static struct forge *forge;
static char **arg;

static void
say(const char *name, const char *value)
{
	(void)printf("%s\t%s\n", name, value == NULL ? "(null)" : value);
}

static void
say_number(const char *name, int64_t n)
{
	(void)printf("%s\t%lld\n", name, (long long)n);
}

static int64_t
number(const char *s)
{
	int64_t n;

	if (!num_parse(s, 0, NUM_SAFE, &n))
		errx(2, "%s is no number", s);
	return n;
}

/* "-" = none. */
static const char *
text(const char *s)
{
	return strcmp(s, "-") == 0 ? NULL : s;
}

static const struct err *
authorize(void)
{
	const struct err *e;

	if ((e = forge_can_sign_in(forge)) == NULL)
		say("url", forge_authorize_url(forge, a, arg[0], arg[1]));
	return e;
}

static void
token_say(const struct forge_token *t)
{
	say("access", t->access);
	say("refresh", t->refresh);
	say("scope", t->scope);
	say_number("life",
	    t->expires_at.ms == 0 ? 0 :
				    (t->expires_at.ms - time_now_ms()) / 1000);
}

static const struct err *
get(void)
{
	struct forge_token t;
	const struct err *e = forge_token_get(forge, a, arg[0], arg[1], &t);

	if (e == NULL)
		token_say(&t);
	return e;
}

static const struct err *
refresh(void)
{
	struct forge_token t;
	const struct err *e = forge_token_refresh(forge, a, arg[0], &t);

	if (e == NULL)
		token_say(&t);
	return e;
}

static const struct err *
give_back(void)
{
	return forge_token_revoke(forge, a, arg[0]);
}

static const struct err *
whoami(void)
{
	struct forge_account u;
	const struct err *e = forge_whoami(forge, a, arg[0], &u);

	if (e != NULL)
		return e;
	say("server", forge_server(forge));
	say("id", u.id);
	say("login", u.login);
	say("name", u.name);
	say("email", u.email);
	say("avatar", u.avatar_url);
	return NULL;
}

static const struct err *
of(void)
{
	struct forge_repo r;
	const struct err *e = forge_repo_of(forge, a, arg[0], &r);

	if (e == NULL)
		say("path", r.path);
	return e;
}

static const struct err *
moved(void)
{
	const char *address;
	const struct err *e = forge_repo_at(forge, a, arg[0], arg[1], &address);

	if (e == NULL)
		say("address", address);
	return e;
}

/* Finds a repository by its address or by its id ("#7"). */
static const struct err *
find(struct forge_repo *r)
{
	const struct err *e;

	if (arg[1][0] == '#')
		*r = (struct forge_repo){ .id = arg[1] + 1, .path = "?/?" };
	else if ((e = forge_repo_of(forge, a, arg[1], r)) != NULL)
		return e;
	return forge_repo_find(forge, a, text(arg[0]), r);
}

static const struct err *
repo(void)
{
	struct forge_repo r;
	const struct err *e = find(&r);

	if (e != NULL)
		return e;
	say("id", r.id);
	say("path", r.path);
	say("default", r.default_branch);
	say("url", r.url);
	say_number("empty", r.empty);
	return NULL;
}

static const struct err *
repos(void)
{
	struct forge_page page = { number(arg[3]), number(arg[4]), false };
	const struct forge_repo *r;
	const struct err *e;
	struct list list;
	size_t i;

	e = forge_repos(forge, a, text(arg[0]), text(arg[1]), text(arg[2]),
	    &page, &list);
	if (e != NULL)
		return e;
	r = list.items;
	for (i = 0; i < list.n; i++)
		say("repo", forge_repo_address(forge, a, &r[i]));
	say_number("more", page.has_more);
	return NULL;
}

static void
branches_say(const struct list *list, const struct forge_page *page)
{
	const struct forge_branch *b = list->items;
	size_t i;

	for (i = 0; i < list->n; i++)
		(void)printf("branch\t%s\t%s\t%d\t%d\n", b[i].name,
		    b[i].commit_hash, b[i].is_protected, b[i].is_default);
	say_number("more", page->has_more);
}

static const struct err *
branches(void)
{
	struct forge_page page = { number(arg[2]), number(arg[3]), false };
	struct forge_repo r;
	struct list list;
	const struct err *e;

	if ((e = find(&r)) != NULL ||
	    (e = forge_branches(forge, a, text(arg[0]), &r, &page, &list)) !=
		NULL)
		return e;
	branches_say(&list, &page);
	return NULL;
}

static const struct err *
commits(void)
{
	struct forge_page page = { number(arg[3]), number(arg[4]), false };
	const struct forge_commit *c;
	struct forge_repo r;
	struct list list;
	const struct err *e;
	size_t i;

	if ((e = find(&r)) != NULL ||
	    (e = forge_commits(forge, a, text(arg[0]), &r, text(arg[2]), &page,
		 &list)) != NULL)
		return e;
	c = list.items;
	for (i = 0; i < list.n; i++)
		(void)printf("commit\t%s\t%.*s\t%s\t%s\t%lld\t%s\n", c[i].hash,
		    (int)strcspn(c[i].message, "\n"), c[i].message,
		    c[i].author_name, c[i].author_email,
		    (long long)c[i].committed_at.ms, c[i].url);
	say_number("more", page.has_more);
	return NULL;
}

static const struct err *
commit(void)
{
	struct forge_commit c;
	struct forge_repo r;
	const struct err *e;

	if ((e = find(&r)) != NULL ||
	    (e = forge_commit_find(forge, a, text(arg[0]), &r, arg[2], &c)) !=
		NULL)
		return e;
	say("hash", c.hash);
	say("message", c.message);
	return NULL;
}

static const struct err *
contains(void)
{
	static const char *const words[] = { [FORGE_UNSURE] = "unsure",
		[FORGE_INSIDE] = "inside",
		[FORGE_OUTSIDE] = "outside" };
	enum forge_contains found;
	struct forge_repo r;
	const struct err *e;

	if ((e = find(&r)) != NULL ||
	    (e = forge_contains(forge, a, text(arg[0]), &r, arg[2], arg[3],
		 &found)) != NULL)
		return e;
	say("commit", words[found]);
	return NULL;
}

static const struct err *
status(void)
{
	const struct forge_status st = { .state = (enum commit_state)number(
					     arg[3]),
		.commit_hash = arg[2],
		.ref = text(arg[4]),
		.context = "slipway/Deploy",
		.description = arg[5],
		.url = text(arg[6]) };
	struct forge_repo r;
	const struct err *e;

	if ((e = find(&r)) != NULL)
		return e;
	return forge_status_put(forge, a, text(arg[0]), &r, &st);
}

static const struct err *
clone(void)
{
	struct forge_credential c;
	const struct err *e = forge_clone_with(forge, a, arg[0], arg[1], &c);

	if (e != NULL)
		return e;
	say("user", c.user);
	say("secret", c.secret);
	return NULL;
}

static const struct err *
ls(void)
{
	struct forge_page page = { number(arg[1]), number(arg[2]), false };
	struct list list;
	const struct err *e;

	e = forge_ls_remote(&settings.gitserver, a, arg[0], 0, &page, &list);
	if (e == NULL)
		branches_say(&list, &page);
	return e;
}

static const struct err *
check(void)
{
	struct when clock;
	const struct err *e = forge_check(forge, a, &clock);

	if (e == NULL)
		say_number("clock", clock.ms);
	return e;
}

static const struct {
	const char *name;
	int args;
	const struct err *(*run)(void);
} commands[] = {
	{ "authorize", 2, authorize },
	{ "check", 0, check },
	{ "get", 2, get },
	{ "refresh", 1, refresh },
	{ "revoke", 1, give_back },
	{ "whoami", 1, whoami },
	{ "of", 1, of },
	{ "at", 2, moved },
	{ "repo", 2, repo },
	{ "repos", 5, repos },
	{ "branches", 4, branches },
	{ "commits", 5, commits },
	{ "commit", 3, commit },
	{ "contains", 4, contains },
	{ "status", 7, status },
	{ "clone", 2, clone },
	{ "ls", 3, ls },
};

static int
answer(int argc, char **argv)
{
	const struct err *e;
	size_t i;

	a = arena_open((size_t)32 << 20);
	if (argc < 3)
		errx(2, "usage: forge_probe CONF WHAT [ARGUMENT…]");
	arg = argv + 3;
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, argv[2]) == 0)
			break;
	if (i == sizeof(commands) / sizeof(commands[0]) ||
	    argc - 3 != commands[i].args)
		errx(2, "%s: no such question", argv[2]);
	if ((e = conf_read(a, settings_keys, argv[1], 0, &settings)) == NULL &&
	    (strcmp(argv[2], "ls") == 0 ||
		(e = forge_open(&settings.gitserver, &forge)) == NULL))
		e = commands[i].run();
	if (e != NULL)
		(void)printf("error %s %d %s\n", probe_code(e), e->sys,
		    e->detail[0] != '\0' ? e->detail : e->msg);
	forge_close(forge);
	arena_close(a);
	return e == NULL ? 0 : 1;
}

static void
serve(void)
{
	static char *argv[3 + ARGS];
	static size_t size[3 + ARGS];
	int64_t argc, i;
	int status;
	pid_t pid;

	while (getdelim(&argv[0], &size[0], '\0', stdin) > 0) {
		if ((argc = number(argv[0]) + 1) > 3 + ARGS)
			errx(2, "%s words", argv[0]);
		for (i = 1; i < argc; i++)
			if (getdelim(&argv[i], &size[i], '\0', stdin) <= 0)
				errx(2, "a command without its end");
		if ((pid = fork()) == 0) {
			if (freopen("/dev/null", "r", stdin) == NULL ||
			    dup2(STDOUT_FILENO, STDERR_FILENO) == -1)
				err(2, "files");
			exit(answer((int)argc, argv));
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			err(2, "fork");
		(void)printf("%c%d\n", '\0',
		    WIFEXITED(status) ? WEXITSTATUS(status) :
					128 + WTERMSIG(status));
		(void)fflush(stdout);
	}
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		return answer(argc, argv);
	serve();
	return 0;
}
