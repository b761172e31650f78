/* SPDX-License-Identifier: ISC */
/* Known answers, sealed values and whatever is done to them.  Key files are
 * tried by the test of slipway-admin. */
#include "crypto/crypto.h"

#include <sys/stat.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/str.h"
#include "crypto/keyring.h"
#include "crypto/private_keyring.h"
#include "tap.h"

static struct arena *arena;

static void
hashes(void)
{
	static const struct {
		const char *text, *hash;
	} sums[] = {
		/* FIPS 180-4 */
		{ "",
		    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b"
		    "7852b855" },
		{ "abc",
		    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61"
		    "f20015ad" },
	};
	static const struct {
		const char *key, *text, *mac;
	} macs[] = {
		/* RFC 4231, cases 1 and 2, and a key of more than a block */
		{ "\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"
		  "\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b",
		    "Hi There",
		    "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c"
		    "2e32cff7" },
		{ "Jefe", "what do ya want for nothing?",
		    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b9"
		    "64ec3843" },
	};
	char hex[CRYPTO_HASH_HEX];
	size_t i;

	for (i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		crypto_sha256(sums[i].text, strlen(sums[i].text), hex);
		is_str(hex, sums[i].hash, "SHA-256");
	}
	for (i = 0; i < sizeof(macs) / sizeof(macs[0]); i++) {
		crypto_hmac(macs[i].key, strlen(macs[i].key), macs[i].text,
		    strlen(macs[i].text), hex);
		is_str(hex, macs[i].mac, "HMAC-SHA-256");
	}
	ok(crypto_equal("abc", "abc") && crypto_equal("", ""), "equal");
	ok(!crypto_equal("abc", "abd") && !crypto_equal("abc", "ab") &&
		!crypto_equal("", "a"),
	    "not equal");
	is_str(crypto_base64url(arena, "\xfb\xff\xfe", 3), "-__-", "base64url");
	is_str(crypto_base64url(arena, "a", 1), "YQ", "without padding");
	is_str(crypto_base64url(arena, "", 0), "", "of nothing");
}

static void
encodings(void)
{
	static const struct {
		const char *text, *want; /* NULL = it is none */
	} cases[] = {
		{ "+//+", "\xfb\xff\xfe" },
		{ "YQ==", "a" },
		{ "", "" },
		{ "YQ", NULL },
		{ "YQ=", NULL },
		{ "YR==", NULL },
		{ "-__-", NULL },
		{ "YWI= ", NULL },
		{ " YWI=", NULL },
		{ "YWI=YWI=", NULL },
		{ "a", NULL },
		{ "====", NULL },
	};
	struct blob got;
	size_t i, len;
	bool read;

	is_str(crypto_base64(arena, "\xfb\xff\xfe", 3), "+//+", "base64");
	is_str(crypto_base64(arena, "a", 1), "YQ==", "with padding");
	is_str(crypto_base64(arena, "", 0), "", "of nothing");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read = crypto_base64_read(arena, cases[i].text,
		    strlen(cases[i].text), &got);
		if (cases[i].want == NULL) {
			ok(!read, "\"%s\" is no base64", cases[i].text);
			continue;
		}
		len = strlen(cases[i].want);
		ok(read && got.len == len &&
			memcmp(got.data, cases[i].want, len) == 0,
		    "\"%s\" is read", cases[i].text);
	}
	is_str(crypto_hex(arena, "\x01\xab\xff", 3), "01abff", "hex");
}

static void
tokens(void)
{
	char one[CRYPTO_TOKEN_MAX], two[CRYPTO_TOKEN_MAX];

	crypto_token("slw_", one);
	crypto_token("slw_", two);
	ok(str_matches(one, "slw_[A-Za-z0-9_-]{43}"), "a token");
	ok(!str_eq(one, two), "and another");
}

/* The key file as it is after `n` rotations. */
static struct keyring *
rotate(const char *path, int n)
{
	struct keyring *k = NULL;
	const struct err *e = NULL;

	while (n-- > 0 && e == NULL)
		e = keyring_rotate(path);
	if (e == NULL)
		e = keyring_open(path, &k);
	if (e != NULL)
		errx(1, "%s", e->msg);
	return k;
}

static bool
opens(const struct keyring *k, const char *purpose, struct blob sealed,
    const char *text)
{
	char *out;
	const struct err *e = keyring_unseal(k, arena, purpose, sealed, &out);

	return e == NULL && str_eq(out, text);
}

static bool
fails(const struct keyring *k, const char *purpose, struct blob sealed)
{
	char *out;

	return keyring_unseal(k, arena, purpose, sealed, &out) != NULL &&
	    out == NULL;
}

static void
sealing(const char *path, const char *other_path)
{
	struct keyring *k = rotate(path, 1), *other = rotate(other_path, 1);
	struct blob one, two, cut;
	unsigned char *copy;
	size_t i, wrong = 0;

	ok(keyring_seal(k, arena, "preset 1 KEY", "the secret", &one) == NULL,
	    "seal");
	ok(opens(k, "preset 1 KEY", one, "the secret"), "and open");
	ok(keyring_seal(k, arena, "preset 1 KEY", "the secret", &two) == NULL &&
		(one.len != two.len ||
		    memcmp(one.data, two.data, one.len) != 0),
	    "twice the same looks different");
	ok(keyring_seal(k, arena, "", "", &two) == NULL &&
		opens(k, "", two, ""),
	    "nothing can be sealed");
	ok(memmem(one.data, one.len, "secret", 6) == NULL, "it is not legible");
	ok(fails(k, "preset 2 KEY", one), "it opens for its purpose only");
	ok(fails(other, "preset 1 KEY", one), "with its key only");
	for (i = 0; i < one.len; i++) {
		copy = arena_alloc(arena, one.len, 1);
		(void)memcpy(copy, one.data, one.len);
		copy[i] ^= 1;
		cut = (struct blob){ copy, one.len };
		if (!fails(k, "preset 1 KEY", cut))
			wrong++;
	}
	is_int((long long)wrong, 0, "not with any bit changed");
	for (i = 0; i < one.len; i++) {
		cut = (struct blob){ one.data, i };
		if (!fails(k, "preset 1 KEY", cut))
			wrong++;
	}
	is_int((long long)wrong, 0, "nor cut short anywhere");
	keyring_close(k);
	keyring_close(other);
	k = rotate(path, 2);
	ok(opens(k, "preset 1 KEY", one, "the secret"),
	    "an old key still opens");
	ok(keyring_seal(k, arena, "preset 1 KEY", "the secret", &two) == NULL &&
		memcmp(one.data, two.data, 5) != 0,
	    "a new one seals");
	keyring_close(k);
}

/* Another file in its place, as an administrator would do it. */
static void
keys_put(const char *path, const char *text)
{
	char temp[64];
	FILE *to;

	(void)snprintf(temp, sizeof(temp), "%s.put", path);
	if ((to = fopen(temp, "w")) == NULL || fputs(text, to) < 0 ||
	    fclose(to) != 0 || chmod(temp, 0600) != 0 ||
	    rename(temp, path) != 0)
		err(1, "%s", path);
}

static char *
keys_text(const char *path)
{
	char text[1024];
	FILE *from;
	size_t n;

	if ((from = fopen(path, "r")) == NULL)
		err(1, "%s", path);
	n = fread(text, 1, sizeof(text), from);
	(void)fclose(from);
	return arena_strndup(arena, text, n);
}

static bool
fits(const struct keyring *k, const char *text, const char *mac)
{
	return keyring_hmac_fits(k, "a", text, strlen(text), mac);
}

static void
codes(const char *path, const char *other_path)
{
	struct keyring *k = rotate(path, 1), *other = rotate(other_path, 1);
	char mac[CRYPTO_HASH_HEX], another[CRYPTO_HASH_HEX];
	char plain[CRYPTO_HASH_HEX];

	keyring_hmac(k, "a", "text", 4, mac);
	ok(str_matches(mac, "00000001[0-9a-f]{56}"), "a code says its key");
	ok(fits(k, "text", mac) && !fits(k, "texts", mac), "of its text");
	keyring_hmac(k, "b", "text", 4, another);
	ok(strcmp(mac, another) != 0 && !fits(k, "text", another),
	    "for its purpose");
	keyring_hmac(other, "a", "text", 4, another);
	ok(strcmp(mac, another) != 0 && !fits(k, "text", another),
	    "and by its key");
	ok(!fits(k, "text", "") && !fits(k, "text", "00000001") &&
		!fits(k, "text", "no hex"),
	    "what is none does not fit");
	keyring_hmac(NULL, "a", "text", 4, plain);
	ok(str_matches(plain, "00000000[0-9a-f]{56}") &&
		fits(NULL, "text", plain) && !fits(NULL, "texts", plain),
	    "without keys it is a hash");
	ok(fits(k, "text", plain) && !fits(k, "texts", plain),
	    "which can be told later");
	ok(fits(NULL, "text", mac), "a code cannot, without its key");
	keyring_close(k);
	k = rotate(path, 1);
	keyring_hmac(k, "a", "text", 4, another);
	ok(str_starts(another, "00000002"), "a new key makes other codes");
	ok(fits(k, "text", mac) && !fits(k, "texts", mac),
	    "and the old one's can be told");
	keyring_close(k);
	keyring_close(other);
}

static struct private_keyring *
pair(const char *path, const char *half, struct public_key **public_key)
{
	struct private_keyring *keys = NULL;
	const struct err *e;

	if ((e = private_keyring_rotate(path, half, geteuid())) != NULL ||
	    (e = private_keyring_open(path, &keys)) != NULL ||
	    (e = public_key_open(half, public_key)) != NULL)
		errx(1, "%s", e->msg);
	return keys;
}

static bool
unseals(const struct private_keyring *keys, const char *purpose,
    const char *sealed, const char *text)
{
	const char *out;
	const struct err *e = private_keyring_unseal(keys, arena, purpose,
	    sealed, &out);

	return text == NULL ? e != NULL && out == NULL :
			      e == NULL && str_eq(out, text);
}

static bool
lacks(const struct private_keyring *keys, const char *sealed)
{
	const char *out;
	const struct err *e = private_keyring_unseal(keys, arena, "for A",
	    sealed, &out);

	return e != NULL && e->code == ERR_CONFIG &&
	    strstr(e->msg, "the key file lacks") != NULL;
}

/* Each of its characters changed, and cut short anywhere. */
static void
damage(const struct private_keyring *keys, const char *sealed)
{
	const size_t len = strlen(sealed);
	size_t i, wrong = 0;
	char *copy;

	for (i = 0; i < len; i++) {
		copy = arena_strdup(arena, sealed);
		copy[i] = copy[i] == 'A' ? 'B' : 'A';
		wrong += !unseals(keys, "for A", copy, NULL);
	}
	is_int((long long)wrong, 0, "no value opens with a character changed");
	for (i = 0; i < len; i++)
		wrong += !unseals(keys, "for A",
		    arena_strndup(arena, sealed, i), NULL);
	is_int((long long)wrong, 0, "nor cut short anywhere");
	ok(unseals(keys, "for A", arena_printf(arena, "%sAAAA", sealed), NULL),
	    "nor with more behind it");
	ok(unseals(keys, "for A", "", NULL) &&
		unseals(keys, "for A", "no base64 at all", NULL),
	    "nor what is none");
	ok(public_key_text_length("for A", "") == 0 &&
		public_key_text_length("for A", "AAAA") == 0 &&
		public_key_text_length("for A", "==") == 0,
	    "in which there is nothing");
}

static void
public_keys(const char *path, const char *half, const char *other_path,
    const char *other_half)
{
	struct public_key *public_key, *other_public, *public_two;
	struct private_keyring *keys = pair(path, half, &public_key),
			       *other = pair(other_path, other_half,
				   &other_public);
	const char *one, *two, *empty;

	ok(public_key_seal(public_key, arena, "for A", "the secret", &one) ==
		NULL,
	    "a public key seals");
	ok(unseals(keys, "for A", one, "the secret"),
	    "and the private one opens it");
	ok(public_key_seal(public_key, arena, "for A", "the secret", &two) ==
		    NULL &&
		!str_eq(one, two),
	    "twice the same looks different");
	ok(public_key_seal(public_key, arena, "for A", "", &empty) == NULL &&
		unseals(keys, "for A", empty, ""),
	    "an empty value can be sealed");
	is_int((long long)public_key_text_length("for A", one), 10,
	    "its length is known");
	is_int((long long)public_key_text_length("for A", empty), 0,
	    "that of none, too");
	ok(unseals(keys, "for B", one, NULL) &&
		unseals(keys, "for", one, NULL) &&
		unseals(keys, "for AA", one, NULL) &&
		unseals(keys, "", one, NULL),
	    "it opens for its purpose only");
	ok(unseals(other, "for A", one, NULL), "with its key only");
	damage(keys, one);
	is_int(private_keyring_match(keys, public_key), KEY_MATCH_CURRENT,
	    "the halves of a pair");
	is_int(private_keyring_match(keys, other_public), KEY_MATCH_NONE,
	    "and of two");
	private_keyring_close(keys);
	keys = pair(path, half, &public_two);
	ok(unseals(keys, "for A", one, "the secret"), "an old key still opens");
	is_int(private_keyring_match(keys, public_key), KEY_MATCH_OLDER,
	    "its half is an older one");
	is_int(private_keyring_match(keys, public_two), KEY_MATCH_CURRENT,
	    "there is a new one");
	ok(public_key_seal(public_two, arena, "for A", "new", &two) == NULL &&
		unseals(keys, "for A", two, "new"),
	    "which seals");
	(void)unlink(path);
	private_keyring_close(keys);
	public_key_close(public_two);
	keys = pair(path, half, &public_two);
	ok(lacks(keys, one) && lacks(keys, two),
	    "a private half that is lost is missed: no number is used again");
	private_keyring_close(keys);
	private_keyring_close(other);
	public_key_close(public_key);
	public_key_close(public_two);
	public_key_close(other_public);
}

static void
renewing(const char *path, const char *private, const char *half)
{
	struct keyring *k = rotate(path, 1), *writer;
	struct public_key *public_key, *fresh;
	struct private_keyring *keys;
	char *first = keys_text(path), *both;
	const char *text;
	struct blob old, new;

	ok(keyring_renew(k) == NULL, "a file that was not changed");
	ok(keyring_seal(k, arena, "a", "old", &old) == NULL, "seals");
	writer = rotate(path, 1);
	both = keys_text(path);
	ok(keyring_seal(writer, arena, "a", "new", &new) == NULL &&
		fails(k, "a", new),
	    "a ring without the newest key does not open what it sealed");
	ok(keyring_renew(k) == NULL && opens(k, "a", new, "new") &&
		opens(k, "a", old, "old"),
	    "renewed it does, and what it opened before");
	keys_put(path, "1 AAAA\n");
	ok(keyring_renew(k) != NULL, "a damaged file is told");
	ok(keyring_renew(k) == NULL && opens(k, "a", new, "new") &&
		opens(k, "a", old, "old"),
	    "once, and the keys stay");
	(void)unlink(path);
	ok(keyring_renew(k) != NULL && keyring_renew(k) == NULL &&
		opens(k, "a", new, "new"),
	    "so do they when it is gone");
	keys_put(path, first);
	ok(keyring_renew(k) == NULL && fails(k, "a", new) &&
		opens(k, "a", old, "old"),
	    "another file counts again");
	keys_put(path, both);
	keyring_close(k);
	keyring_close(writer);

	keys = pair(private, half, &public_key);
	private_keyring_close(keys);
	keys = pair(private, half, &fresh);
	ok(public_key_seal(public_key, arena, "a", "x", &text) == NULL &&
		unseals(keys, "a", text, "x") &&
		private_keyring_match(keys, public_key) == KEY_MATCH_OLDER,
	    "an older half seals still");
	ok(public_key_renew(public_key) == NULL &&
		private_keyring_match(keys, public_key) == KEY_MATCH_CURRENT,
	    "renewed it is the newest");
	keys_put(half, "");
	ok(public_key_renew(public_key) != NULL &&
		public_key_renew(public_key) == NULL &&
		private_keyring_match(keys, public_key) == KEY_MATCH_CURRENT,
	    "a file of nothing is told once, and the half stays");
	private_keyring_close(keys);
	public_key_close(public_key);
	public_key_close(fresh);
}

static void
refused(const struct err *e, const char *want, const char *name)
{
	ok(e != NULL && e->code == ERR_CONFIG && strstr(e->msg, want) != NULL,
	    "%s: %s", name, e == NULL ? "passes" : e->msg);
}

/* As many keys as a file may hold, and what comes of one more. */
static void
limits(const char *path)
{
	struct keyring *k = rotate(path, 1), *full;
	const struct err *e;
	struct blob sealed;
	struct stat before, after;
	FILE *out;

	ok(keyring_seal(k, arena, "first", "the secret", &sealed) == NULL,
	    "seal");
	keyring_close(k);
	full = rotate(path, 63);
	ok(opens(full, "first", sealed, "the secret"),
	    "the first of 64 keys opens");
	keyring_close(full);
	ok(stat(path, &before) == 0, "they have a file");
	refused(keyring_rotate(path), "holds 64 keys already", "one more");
	ok(stat(path, &after) == 0 && before.st_ino == after.st_ino &&
		before.st_size == after.st_size,
	    "which changes nothing");
	if ((out = fopen(path, "a")) == NULL ||
	    fputs("65 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n", out) <
		0 ||
	    fclose(out) != 0)
		err(1, "%s", path);
	refused(keyring_open(path, &k), "more than 64 keys", "by hand");
	ok(k == NULL, "none of them is taken");
	e = keyring_rotate(arena_printf(arena, "%s.d/keys", path));
	ok(e != NULL && strstr(e->msg, ".d/keys") != NULL &&
		strstr(e->msg, "No such file") != NULL,
	    "no folder for it: %s", e == NULL ? "passes" : e->msg);
}

int
main(void)
{
	char dir[] = "/tmp/slipway-crypto-XXXXXX";
	const struct err *e;
	char *path[12];
	int status;
	size_t i;

	arena = arena_open((size_t)1 << 20);
	if ((e = crypto_init()) != NULL || mkdtemp(dir) == NULL)
		err(1, "start");
	for (i = 0; i < 12; i++)
		path[i] = arena_printf(arena, "%s/%zu", dir, i);
	hashes();
	encodings();
	tokens();
	sealing(path[0], path[1]);
	public_keys(path[2], path[3], path[4], path[5]);
	codes(path[6], path[7]);
	renewing(path[8], path[9], path[10]);
	limits(path[11]);
	for (i = 0; i < 12; i++)
		(void)unlink(path[i]);
	(void)rmdir(dir);
	status = tap_done();
	arena_close(arena);
	return status;
}
