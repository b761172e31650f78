/* SPDX-License-Identifier: ISC */
/* sealer seal|unseal|public-seal|private-unseal KEYFILE: seals values that
 * tests put into the database, and unseals what they find there.  Reads lines
 * "PURPOSE TAB TEXT" and prints a line for each: in hex what is sealed with
 * secret.key, in base64 what is sealed for the dispatcher; "! why" for an
 * error. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/num.h"
#include "crypto/keyring.h"
#include "crypto/private_keyring.h"

static struct arena *arena;
static const char *file;
static struct keyring *keyring;
static struct private_keyring *keys;
static struct public_key *public_key;

static struct blob
bytes(const char *hex)
{
	size_t len = strlen(hex) / 2, i;
	unsigned char *data = arena_alloc(arena, len, 1);
	char digits[3] = "";

	for (i = 0; i < len; i++) {
		(void)memcpy(digits, hex + 2 * i, 2);
		data[i] = (unsigned char)strtoul(digits, NULL, 16);
	}
	return (struct blob){ data, len };
}

static const struct err *
do_seal(const char *purpose, const char *text, const char **out)
{
	const struct err *e = NULL;
	struct blob sealed;

	*out = NULL;
	if (keyring == NULL && (e = keyring_open(file, &keyring)) != NULL)
		return e;
	if ((e = keyring_seal(keyring, arena, purpose, text, &sealed)) == NULL)
		*out = crypto_hex(arena, sealed.data, sealed.len);
	return e;
}

static const struct err *
do_unseal(const char *purpose, const char *text, const char **out)
{
	const struct err *e = NULL;
	char *plain;

	*out = NULL;
	if (keyring == NULL && (e = keyring_open(file, &keyring)) != NULL)
		return e;
	e = keyring_unseal(keyring, arena, purpose, bytes(text), &plain);
	*out = plain;
	return e;
}

static const struct err *
do_public_seal(const char *purpose, const char *text, const char **out)
{
	const struct err *e = NULL;

	*out = NULL;
	if (public_key == NULL &&
	    (e = public_key_open(file, &public_key)) != NULL)
		return e;
	return public_key_seal(public_key, arena, purpose, text, out);
}

static const struct err *
do_private_unseal(const char *purpose, const char *text, const char **out)
{
	const struct err *e = NULL;

	*out = NULL;
	if (keys == NULL && (e = private_keyring_open(file, &keys)) != NULL)
		return e;
	return private_keyring_unseal(keys, arena, purpose, text, out);
}

static const struct {
	const char *name;
	const struct err *(*run)(const char *, const char *, const char **);
} works[] = {
	{ "seal", do_seal },
	{ "unseal", do_unseal },
	{ "public-seal", do_public_seal },
	{ "private-unseal", do_private_unseal },
};

int
main(int argc, char **argv)
{
	char *line, *end, *tab;
	const struct err *e;
	const char *answer;
	struct buf text;
	size_t i;

	for (i = 0; argc == 3 && i < sizeof(works) / sizeof(works[0]); i++)
		if (strcmp(works[i].name, argv[1]) == 0)
			break;
	if (argc != 3 || i == sizeof(works) / sizeof(works[0]))
		errx(64,
		    "usage: sealer seal|unseal|public-seal|private-unseal KEYFILE");
	file = argv[2];
	arena = arena_open((size_t)256 << 20);
	buf_init(&text, (size_t)64 << 20);
	if ((e = crypto_init()) != NULL ||
	    (e = file_rest(STDIN_FILENO, &text)) != NULL)
		errx(1, "%s", e->msg);
	for (line = text.data; line != NULL && *line != '\0'; line = end) {
		end = line + strcspn(line, "\n");
		if (*end != '\0')
			*end++ = '\0';
		if ((tab = strchr(line, '\t')) == NULL)
			errx(65, "%s: no tab", line);
		*tab = '\0';
		if ((e = works[i].run(line, tab + 1, &answer)) != NULL)
			(void)printf("! %s\n", e->msg);
		else
			(void)puts(answer);
	}
	keyring_close(keyring);
	private_keyring_close(keys);
	public_key_close(public_key);
	buf_release(&text);
	arena_close(arena);
	return 0;
}
