/* SPDX-License-Identifier: ISC */
/* Known answers, sealed values and tampering.  The test of slipway-admin covers
 * key files. */
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
	char hex[CRYPTO_HASH_HEX], digest[CRYPTO_DIGEST_HEX];
	size_t i;

	for (i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		crypto_sha256(sums[i].text, strlen(sums[i].text), hex);
		is_str(hex, sums[i].hash, "SHA-256 of a known text");
	}
	crypto_digest("abc", 3, digest);
	is_str(digest, "cf4ab791c62b8d2b2109c90275287816",
	    "BLAKE2b with 128 bits of a known text");
	for (i = 0; i < sizeof(macs) / sizeof(macs[0]); i++) {
		crypto_hmac(macs[i].key, strlen(macs[i].key), macs[i].text,
		    strlen(macs[i].text), hex);
		is_str(hex, macs[i].mac, "HMAC-SHA-256 of a known text");
	}
	ok(crypto_equal("abc", "abc") && crypto_equal("", ""),
	    "crypto_equal accepts equal strings");
	ok(!crypto_equal("abc", "abd") && !crypto_equal("abc", "ab") &&
		!crypto_equal("", "a"),
	    "crypto_equal rejects different strings");
	is_str(crypto_base64url(arena, "\xfb\xff\xfe", 3), "-__-",
	    "base64url of three bytes");
	is_str(crypto_base64url(arena, "a", 1), "YQ",
	    "base64url has no padding");
	is_str(crypto_base64url(arena, "", 0), "", "base64url of nothing");
}

static void
encodings(void)
{
	static const struct {
		const char *text, *want; /* NULL = invalid */
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

	is_str(crypto_base64(arena, "\xfb\xff\xfe", 3), "+//+",
	    "base64 of three bytes");
	is_str(crypto_base64(arena, "a", 1), "YQ==", "base64 has padding");
	is_str(crypto_base64(arena, "", 0), "", "base64 of nothing");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read = crypto_base64_read(arena, cases[i].text,
		    strlen(cases[i].text), &got);
		if (cases[i].want == NULL) {
			ok(!read, "invalid base64: \"%s\"", cases[i].text);
			continue;
		}
		len = strlen(cases[i].want);
		ok(read && got.len == len &&
			memcmp(got.data, cases[i].want, len) == 0,
		    "valid base64: \"%s\"", cases[i].text);
	}
	is_str(crypto_hex(arena, "\x01\xab\xff", 3), "01abff",
	    "hex of three bytes");
}

static void
tokens(void)
{
	char one[CRYPTO_TOKEN_MAX], two[CRYPTO_TOKEN_MAX];

	crypto_token("slw_", one);
	crypto_token("slw_", two);
	ok(str_matches(one, "slw_[A-Za-z0-9_-]{43}"),
	    "crypto_token returns a token");
	ok(!str_eq(one, two),
	    "crypto_token returns a different token each time");
}

/* The key file after `n` rotations. */
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
	    "a value is sealed");
	ok(opens(k, "preset 1 KEY", one, "the secret"),
	    "a sealed value can be unsealed");
	ok(keyring_seal(k, arena, "preset 1 KEY", "the secret", &two) == NULL &&
		(one.len != two.len ||
		    memcmp(one.data, two.data, one.len) != 0),
	    "the same value is sealed differently each time");
	ok(keyring_seal(k, arena, "", "", &two) == NULL &&
		opens(k, "", two, ""),
	    "an empty value can be sealed");
	ok(memmem(one.data, one.len, "secret", 6) == NULL,
	    "a sealed value does not contain its text");
	ok(fails(k, "preset 2 KEY", one),
	    "a value cannot be unsealed for another purpose");
	ok(fails(other, "preset 1 KEY", one),
	    "a value cannot be unsealed with another key");
	for (i = 0; i < one.len; i++) {
		copy = arena_alloc(arena, one.len, 1);
		(void)memcpy(copy, one.data, one.len);
		copy[i] ^= 1;
		cut = (struct blob){ copy, one.len };
		if (!fails(k, "preset 1 KEY", cut))
			wrong++;
	}
	is_int((long long)wrong, 0,
	    "a value with a changed bit cannot be unsealed");
	for (i = 0; i < one.len; i++) {
		cut = (struct blob){ one.data, i };
		if (!fails(k, "preset 1 KEY", cut))
			wrong++;
	}
	is_int((long long)wrong, 0, "a truncated value cannot be unsealed");
	keyring_close(k);
	keyring_close(other);
	k = rotate(path, 2);
	ok(opens(k, "preset 1 KEY", one, "the secret"),
	    "an old key can unseal");
	ok(keyring_seal(k, arena, "preset 1 KEY", "the secret", &two) == NULL &&
		memcmp(one.data, two.data, 5) != 0,
	    "a new key seals");
	keyring_close(k);
}

/* Replaces a file, as an administrator would. */
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
	ok(str_matches(mac, "00000001[0-9a-f]{56}"), "a code names its key");
	ok(fits(k, "text", mac) && !fits(k, "texts", mac),
	    "a code fits only its text");
	keyring_hmac(k, "b", "text", 4, another);
	ok(strcmp(mac, another) != 0 && !fits(k, "text", another),
	    "a code fits only its purpose");
	keyring_hmac(other, "a", "text", 4, another);
	ok(strcmp(mac, another) != 0 && !fits(k, "text", another),
	    "a code fits only its key");
	ok(!fits(k, "text", "") && !fits(k, "text", "00000001") &&
		!fits(k, "text", "no hex"),
	    "an invalid code does not fit");
	keyring_hmac(NULL, "a", "text", 4, plain);
	ok(str_matches(plain, "00000000[0-9a-f]{56}") &&
		fits(NULL, "text", plain) && !fits(NULL, "texts", plain),
	    "without a key file a code is a hash");
	ok(fits(k, "text", plain) && !fits(k, "texts", plain),
	    "a hash is recognized after a key file was created");
	ok(fits(NULL, "text", mac), "a code does not fit without its key");
	keyring_close(k);
	k = rotate(path, 1);
	keyring_hmac(k, "a", "text", 4, another);
	ok(str_starts(another, "00000002"), "a new key creates other codes");
	ok(fits(k, "text", mac) && !fits(k, "texts", mac),
	    "codes of the old key are recognized");
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

/* Changes each character and truncates at each position. */
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
	is_int((long long)wrong, 0,
	    "a value with a changed character cannot be unsealed");
	for (i = 0; i < len; i++)
		wrong += !unseals(keys, "for A",
		    arena_strndup(arena, sealed, i), NULL);
	is_int((long long)wrong, 0, "a truncated value cannot be unsealed");
	ok(unseals(keys, "for A", arena_printf(arena, "%sAAAA", sealed), NULL),
	    "a value with added characters cannot be unsealed");
	ok(unseals(keys, "for A", "", NULL) &&
		unseals(keys, "for A", "no base64 at all", NULL),
	    "an invalid value cannot be unsealed");
	ok(public_key_text_length("for A", "") == 0 &&
		public_key_text_length("for A", "AAAA") == 0 &&
		public_key_text_length("for A", "==") == 0,
	    "an empty text cannot be unsealed");
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
	    "the private key unseals");
	ok(public_key_seal(public_key, arena, "for A", "the secret", &two) ==
		    NULL &&
		!str_eq(one, two),
	    "the same value is sealed differently each time");
	ok(public_key_seal(public_key, arena, "for A", "", &empty) == NULL &&
		unseals(keys, "for A", empty, ""),
	    "an empty value can be sealed");
	is_int((long long)public_key_text_length("for A", one), 10,
	    "the length of a sealed value is known");
	is_int((long long)public_key_text_length("for A", empty), 0,
	    "the length of an invalid value is 0");
	ok(unseals(keys, "for B", one, NULL) &&
		unseals(keys, "for", one, NULL) &&
		unseals(keys, "for AA", one, NULL) &&
		unseals(keys, "", one, NULL),
	    "a value cannot be unsealed for another purpose");
	ok(unseals(other, "for A", one, NULL),
	    "a value cannot be unsealed with another key");
	damage(keys, one);
	is_int(private_keyring_match(keys, public_key), KEY_MATCH_CURRENT,
	    "a public key matches its private key");
	is_int(private_keyring_match(keys, other_public), KEY_MATCH_NONE,
	    "a public key does not match another private key");
	private_keyring_close(keys);
	keys = pair(path, half, &public_two);
	ok(unseals(keys, "for A", one, "the secret"),
	    "an old private key can unseal");
	is_int(private_keyring_match(keys, public_key), KEY_MATCH_OLDER,
	    "the public key of an old private key is recognized as old");
	is_int(private_keyring_match(keys, public_two), KEY_MATCH_CURRENT,
	    "a key pair can be rotated");
	ok(public_key_seal(public_two, arena, "for A", "new", &two) == NULL &&
		unseals(keys, "for A", two, "new"),
	    "the new public key seals");
	(void)unlink(path);
	private_keyring_close(keys);
	public_key_close(public_two);
	keys = pair(path, half, &public_two);
	ok(lacks(keys, one) && lacks(keys, two),
	    "no number of a missing private key file is used again");
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

	ok(keyring_renew(k) == NULL,
	    "keyring_renew of an unchanged file succeeds");
	ok(keyring_seal(k, arena, "a", "old", &old) == NULL, "a keyring seals");
	writer = rotate(path, 1);
	both = keys_text(path);
	ok(keyring_seal(writer, arena, "a", "new", &new) == NULL &&
		fails(k, "a", new),
	    "a keyring without the newest key cannot unseal its values");
	ok(keyring_renew(k) == NULL && opens(k, "a", new, "new") &&
		opens(k, "a", old, "old"),
	    "a renewed keyring can unseal values of all keys");
	keys_put(path, "1 AAAA\n");
	ok(keyring_renew(k) != NULL, "a damaged key file is an error");
	ok(keyring_renew(k) == NULL && opens(k, "a", new, "new") &&
		opens(k, "a", old, "old"),
	    "the error is reported once, and the keyring keeps its keys");
	(void)unlink(path);
	ok(keyring_renew(k) != NULL && keyring_renew(k) == NULL &&
		opens(k, "a", new, "new"),
	    "a keyring keeps its keys when the file is deleted");
	keys_put(path, first);
	ok(keyring_renew(k) == NULL && fails(k, "a", new) &&
		opens(k, "a", old, "old"),
	    "a restored file is read again");
	keys_put(path, both);
	keyring_close(k);
	keyring_close(writer);

	keys = pair(private, half, &public_key);
	private_keyring_close(keys);
	keys = pair(private, half, &fresh);
	ok(public_key_seal(public_key, arena, "a", "x", &text) == NULL &&
		unseals(keys, "a", text, "x") &&
		private_keyring_match(keys, public_key) == KEY_MATCH_OLDER,
	    "an old public key still seals");
	ok(public_key_renew(public_key) == NULL &&
		private_keyring_match(keys, public_key) == KEY_MATCH_CURRENT,
	    "a renewed public key is the newest");
	keys_put(half, "");
	ok(public_key_renew(public_key) != NULL &&
		public_key_renew(public_key) == NULL &&
		private_keyring_match(keys, public_key) == KEY_MATCH_CURRENT,
	    "an empty file is reported once, and the public key stays");
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

/* As many keys as a file may hold, and one more. */
static void
limits(const char *path)
{
	struct keyring *k = rotate(path, 1), *full;
	const struct err *e;
	struct blob sealed;
	struct stat before, after;
	FILE *out;

	ok(keyring_seal(k, arena, "first", "the secret", &sealed) == NULL,
	    "a value is sealed");
	keyring_close(k);
	full = rotate(path, 63);
	ok(opens(full, "first", sealed, "the secret"),
	    "the first of 64 keys unseals");
	keyring_close(full);
	ok(stat(path, &before) == 0, "the key file exists");
	refused(keyring_rotate(path), "already contains 64 keys", "a 65th key");
	ok(stat(path, &after) == 0 && before.st_ino == after.st_ino &&
		before.st_size == after.st_size,
	    "a rejected rotation changes nothing");
	if ((out = fopen(path, "a")) == NULL ||
	    fputs("65 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n", out) <
		0 ||
	    fclose(out) != 0)
		err(1, "%s", path);
	refused(keyring_open(path, &k), "more than 64 keys",
	    "a key file with 65 keys");
	ok(k == NULL, "a rejected key file yields no keyring");
	e = keyring_rotate(arena_printf(arena, "%s.d/keys", path));
	ok(e != NULL && strstr(e->msg, ".d/keys") != NULL &&
		strstr(e->msg, "No such file") != NULL,
	    "a missing directory: %s", e == NULL ? "passes" : e->msg);
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
