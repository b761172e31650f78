/* SPDX-License-Identifier: ISC */
#include "store/env_name.h"

#include <stdbool.h>
#include <string.h>

#include "core/str.h"

/* Names that would affect the programs that run the steps. A trailing `*`
 * matches any suffix. */
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
	"JAVA_TOOL_OPTIONS",
	"JDK_JAVA_OPTIONS",
	"LD_*",
	"LOCALDOMAIN",
	"LOCPATH",
	"MALLOC_*",
	"NLSPATH",
	"NODE_OPTIONS",
	"OPENSSL_CONF",
	"OPENSSL_ENGINES",
	"OPENSSL_MODULES",
	"PATH",
	"PERL*",
	"PHPRC",
	"PHP_INI_SCAN_DIR",
	"PROMPT_COMMAND",
	"PS4",
	"PYTHON*",
	"RES_OPTIONS",
	"RUBY*",
	"SHELL",
	"SHELLOPTS",
	"SLIPWAY_*",
	"SSH_ASKPASS*",
	"XDG_CONFIG_HOME",
	"ZDOTDIR",
	"_JAVA_OPTIONS",
	NULL,
};

static bool
is_refused(const char *name)
{
	size_t i, len;

	for (i = 0; rejected[i] != NULL; i++) {
		len = strlen(rejected[i]);
		if (rejected[i][len - 1] == '*' ?
			strncmp(name, rejected[i], len - 1) == 0 :
			strcmp(name, rejected[i]) == 0)
			return true;
	}
	return false;
}

const char *
env_name_fault(const char *name)
{
	if (!str_matches(name, ENV_NAME_ERE))
		return "must start with a letter or _, contain only letters, "
		       "digits and _, and have at most 128 characters";
	if (is_refused(name))
		return "is a name that controls the shell, the loader, git or "
		       "this service; choose another";
	return NULL;
}
