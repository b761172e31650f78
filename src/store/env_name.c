/* SPDX-License-Identifier: ISC */
#include "store/env_name.h"

#include <stdbool.h>
#include <string.h>

#include "core/str.h"

/* Names that steer the shell and the loader of the steps, git, or this service,
 * whoever sets them. A trailing `*` matches any suffix. */
static const char *const rejected[] = {
	"BASH",
	"BASHOPTS",
	"BASH_*",
	"CDPATH",
	"CI",
	"ENV",
	"GCONV_PATH",
	"GIT_*",
	"GLIBC_TUNABLES",
	"GLOBIGNORE",
	"HOME",
	"HOSTALIASES",
	"IFS",
	"LD_*",
	"LOCALDOMAIN",
	"LOCPATH",
	"MALLOC_*",
	"NLSPATH",
	"OPENSSL_CONF",
	"OPENSSL_ENGINES",
	"OPENSSL_MODULES",
	"PATH",
	"PROMPT_COMMAND",
	"PS4",
	"RES_OPTIONS",
	"SHELL",
	"SHELLOPTS",
	"SLIPWAY_*",
	"SSH_ASKPASS*",
	"XDG_CONFIG_HOME",
	"ZDOTDIR",
	NULL,
};

/* Of these, names that steer no more than what git commits, prints and traces,
 * and those that other services use for their own variables. */
static const char *const harmless[] = {
	"GIT_AUTHOR_*",
	"GIT_BRANCH",
	"GIT_COMMIT",
	"GIT_COMMITTER_*",
	"GIT_CURL_VERBOSE",
	"GIT_DEPTH",
	"GIT_EDITOR",
	"GIT_LFS_SKIP_SMUDGE",
	"GIT_MERGE_AUTOEDIT",
	"GIT_PAGER",
	"GIT_SEQUENCE_EDITOR",
	"GIT_STRATEGY",
	"GIT_TAG",
	"GIT_TERMINAL_PROMPT",
	"GIT_TRACE*",
	"GIT_URL",
	NULL,
};

/* Names by which a program runs other code than that of the script. Maintainers
 * could as well write it there; deployers could not. */
static const char *const steering[] = {
	"GIT_*",
	"JAVA_TOOL_OPTIONS",
	"JDK_JAVA_OPTIONS",
	"NODE_OPTIONS",
	"PERL*",
	"PHPRC",
	"PHP_INI_SCAN_DIR",
	"PYTHON*",
	"RUBY*",
	"_JAVA_OPTIONS",
	NULL,
};

static bool
is_among(const char *const *names, const char *name)
{
	size_t i, len;

	for (i = 0; names[i] != NULL; i++) {
		len = strlen(names[i]);
		if (names[i][len - 1] == '*' ?
			strncmp(name, names[i], len - 1) == 0 :
			strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

bool
env_name_steers(const char *name)
{
	return is_among(steering, name);
}

const char *
env_name_fault(const char *name)
{
	if (!str_matches(name, ENV_NAME_ERE))
		return "must start with a letter or _, contain only letters, "
		       "digits and _, and have at most 128 characters";
	if (is_among(rejected, name) && !is_among(harmless, name))
		return "is a name that controls the shell, the loader, git or "
		       "this service; choose another";
	return NULL;
}
