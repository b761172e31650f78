/* SPDX-License-Identifier: ISC */
#include "crypto/keyfile.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/buf.h"
#include "core/num.h"
#include "crypto/crypto.h"

#define FILE_MAX ((size_t)8192)
#define PATH_SIZE 4096
#define PRINT "fingerprint"
#define VARIANT sodium_base64_VARIANT_ORIGINAL
#define TEXT_SIZE                                                              \
	sodium_base64_ENCODED_LEN(KEYFILE_BYTES, sodium_base64_VARIANT_ORIGINAL)

static const struct kind {
	mode_t mode;     /* of new files */
	mode_t rejected; /* bits that no file may have */
} kinds[KEYFILE__MAX] = {
	[KEYFILE_SHARED] = { 0640, S_IWGRP | S_IRWXO },
	[KEYFILE_PRIVATE] = { 0400, S_IRWXG | S_IRWXO },
	[KEYFILE_PUBLIC] = { 0644, S_IWGRP | S_IWOTH },
};

static struct keyfile_seen
seen_of(const struct stat *st)
{
	return (struct keyfile_seen){ .device = st->st_dev,
		.file = st->st_ino,
		.size = st->st_size,
		.changed = st->st_ctim };
}

bool
keyfile_changed(struct keyfile *f, const char *path)
{
	struct keyfile_seen now = { .file = 0 };
	const struct keyfile_seen *old = &f->seen;
	struct stat st;
	bool same;

	if (stat(path, &st) == 0)
		now = seen_of(&st);
	same = now.device == old->device && now.file == old->file &&
	    now.size == old->size &&
	    now.changed.tv_sec == old->changed.tv_sec &&
	    now.changed.tv_nsec == old->changed.tv_nsec;
	f->seen = now;
	return !same;
}

/* Checks the open descriptor, so that the file cannot be replaced in between.
 * Root may also read what only the dispatcher may. */
static const struct err *
check_file(int fd, const char *path, enum keyfile_kind kind,
    struct keyfile_seen *seen)
{
	const uid_t me = geteuid();
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_errno("%s", path);
	*seen = seen_of(&st);
	if (!S_ISREG(st.st_mode))
		return err_new(ERR_CONFIG, "%s: is not a regular file", path);
	if (st.st_uid != 0 && st.st_uid != me &&
	    !(kind == KEYFILE_PRIVATE && me == 0))
		return err_new(ERR_CONFIG,
		    "%s: must belong to root or to the account that reads it",
		    path);
	if ((st.st_mode & kinds[kind].rejected) != 0)
		return err_new(ERR_CONFIG,
		    "%s: mode %03o is too permissive: chmod %04o", path,
		    (unsigned)(st.st_mode & 0777), (unsigned)kinds[kind].mode);
	if (st.st_size > (off_t)FILE_MAX)
		return err_new(ERR_CONFIG, "%s: is too large", path);
	return NULL;
}

static const struct err *
read_file(const char *path, enum keyfile_kind kind, char text[FILE_MAX + 1],
    size_t *len, struct keyfile_seen *seen)
{
	const struct err *e;
	ssize_t n = 1;
	int fd;

	*len = 0;
	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0) {
		if (errno == ENOENT)
			return err_number(ERR_CONFIG, ENOENT,
			    "%s: is missing: run slipway-admin key", path);
		return err_errno("%s", path);
	}
	if ((e = check_file(fd, path, kind, seen)) != NULL)
		goto out;
	while (*len < FILE_MAX && n > 0) {
		n = read(fd, text + *len, FILE_MAX - *len);
		if (n > 0)
			*len += (size_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	text[*len] = '\0';
	if (n < 0)
		e = err_errno("%s", path);
	else if (strlen(text) != *len)
		e = err_new(ERR_CONFIG, "%s: contains a NUL byte", path);
out:
	(void)close(fd);
	return e;
}

/* Parses "ID BASE64". */
static bool
parse_line(char *line, struct keyfile_key *out)
{
	char *text = strchr(line, ' ');
	size_t len = 0;

	if (text == NULL)
		return false;
	*text++ = '\0';
	return num_parse(line, 1, UINT32_MAX, &out->id) &&
	    sodium_base642bin(out->bytes, KEYFILE_BYTES, text, strlen(text),
		NULL, &len, NULL, VARIANT) == 0 &&
	    len == KEYFILE_BYTES;
}

const struct keyfile_key *
keyfile_find(const struct keyfile *f, int64_t id)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->keys[i].id == id)
			return &f->keys[i];
	return NULL;
}

static const struct err *
parse(struct keyfile *f, char *text, const char *path)
{
	struct keyfile_key *key;
	char *line, *end;
	size_t number = 0;

	for (line = text; *line != '\0'; line = end) {
		number++;
		end = line + strcspn(line, "\n");
		if (*end != '\0')
			*end++ = '\0';
		if (f->n == KEYFILE_KEYS)
			return err_new(ERR_CONFIG, "%s: more than %d keys",
			    path, KEYFILE_KEYS);
		key = &f->keys[f->n];
		if (!parse_line(line, key) || keyfile_find(f, key->id) != NULL)
			return err_new(ERR_CONFIG,
			    "%s:%zu: must be a unique number, a blank and"
			    " %d bytes in base64",
			    path, number, KEYFILE_BYTES);
		f->n++;
	}
	if (f->n == 0)
		return err_new(ERR_CONFIG,
		    "%s: contains no key: run slipway-admin key", path);
	return NULL;
}

const struct err *
keyfile_read(const char *path, enum keyfile_kind kind, struct keyfile *out)
{
	char text[FILE_MAX + 1];
	const struct err *e;
	size_t len;

	(void)memset(out, 0, sizeof(*out));
	if ((e = read_file(path, kind, text, &len, &out->seen)) == NULL)
		e = parse(out, text, path);
	sodium_memzero(text, sizeof(text));
	if (e != NULL)
		sodium_memzero(out, sizeof(*out));
	return e;
}

void
keyfile_id_put(unsigned char out[KEYFILE_ID], int64_t id)
{
	size_t i;

	for (i = 0; i < KEYFILE_ID; i++)
		out[i] = (unsigned char)(id >> (24 - 8 * i) & 255);
}

int64_t
keyfile_id_get(const unsigned char at[KEYFILE_ID])
{
	int64_t id = 0;
	size_t i;

	for (i = 0; i < KEYFILE_ID; i++)
		id = id * 256 + at[i];
	return id;
}

int64_t
keyfile_next(const struct keyfile *f)
{
	int64_t id = 1;
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->keys[i].id >= id)
			id = f->keys[i].id + 1;
	return id;
}

const struct err *
keyfile_push(struct keyfile *f, const char *path, const struct keyfile_key *key)
{
	if (f->n == KEYFILE_KEYS)
		return err_new(ERR_CONFIG,
		    "%s: already contains %d keys: slipway-admin key --reseal, "
		    "then --prune, removes old ones",
		    path, KEYFILE_KEYS);
	(void)memmove(&f->keys[1], &f->keys[0], f->n * sizeof(f->keys[0]));
	f->keys[0] = *key;
	f->n++;
	return NULL;
}

static void
print(const struct keyfile *f, struct buf *out)
{
	char text[TEXT_SIZE];
	size_t i;

	for (i = 0; i < f->n; i++) {
		(void)sodium_bin2base64(text, sizeof(text), f->keys[i].bytes,
		    KEYFILE_BYTES, VARIANT);
		buf_printf(out, "%lld %s\n", (long long)f->keys[i].id, text);
	}
	sodium_memzero(text, sizeof(text));
}

/* Syncs the folder, so that a crash does not restore the old entry. */
static const struct err *
sync_folder(char *path)
{
	char *slash = strrchr(path, '/');
	const struct err *e = NULL;
	int fd;

	if (slash != NULL)
		slash[slash == path ? 1 : 0] = '\0';
	fd = open(slash == NULL ? "." : path,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_errno("%s", path);
	if (fsync(fd) != 0 && errno != EINVAL)
		e = err_errno("%s", path);
	(void)close(fd);
	return e;
}

/* Writes the new file, which others can never read in between. */
static const struct err *
fill(int fd, const char *path, const struct kind *kind,
    const struct buf *content, uid_t owner)
{
	gid_t group = (gid_t)-1;
	struct stat old;

	if (stat(path, &old) == 0) {
		owner = old.st_uid;
		group = old.st_gid;
	}
	if (geteuid() != 0)
		owner = (uid_t)-1;
	if (fchown(fd, owner, group) != 0)
		return err_errno("%s: owner", path);
	if (fchmod(fd, kind->mode) != 0 ||
	    write(fd, content->data, content->len) != (ssize_t)content->len ||
	    fsync(fd) != 0)
		return err_errno("%s", path);
	return NULL;
}

static const struct err *
replace(const char *path, const struct kind *kind, const struct buf *content,
    uid_t owner)
{
	char temp[PATH_SIZE];
	const struct err *e;
	int fd;

	if ((size_t)snprintf(temp, sizeof(temp), "%s.new", path) >=
	    sizeof(temp))
		return err_new(ERR_CONFIG, "%s: path is too long", path);
	if (unlink(temp) != 0 && errno != ENOENT)
		return err_errno("%s", temp);
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
	    0600);
	if (fd < 0)
		return err_errno("%s", temp);
	e = fill(fd, path, kind, content, owner);
	if (close(fd) != 0 && e == NULL)
		e = err_errno("%s", temp);
	if (e == NULL && rename(temp, path) != 0)
		e = err_errno("%s", path);
	if (e == NULL)
		return sync_folder(temp);
	(void)unlink(temp);
	return e;
}

const struct err *
keyfile_write(const char *path, enum keyfile_kind kind, const struct keyfile *f,
    uid_t owner)
{
	const struct err *e;
	struct buf content;

	buf_init(&content, FILE_MAX);
	print(f, &content);
	if ((e = buf_check(&content)) == NULL)
		e = replace(path, &kinds[kind], &content, owner);
	sodium_memzero(content.data, content.len);
	buf_release(&content);
	return e;
}

const struct err *
keyfile_prune(const char *path, enum keyfile_kind kind, int64_t id)
{
	const struct err *e;
	struct keyfile file;

	if ((e = keyfile_read(path, kind, &file)) != NULL)
		return e;
	if (file.keys[0].id != id)
		e = err_new(ERR_CONFLICT,
		    "%s: the first key has changed: try again", path);
	else if (file.n > 1) {
		sodium_memzero(&file.keys[1],
		    (file.n - 1) * sizeof(file.keys[0]));
		file.n = 1;
		e = keyfile_write(path, kind, &file, KEYFILE_NOBODY);
	}
	sodium_memzero(&file, sizeof(file));
	return e;
}

void
keyfile_name(const struct keyfile_key *key,
    const unsigned char bytes[KEYFILE_BYTES], struct key_name *out)
{
	char hash[CRYPTO_HASH_HEX];

	crypto_hmac(bytes, KEYFILE_BYTES, PRINT, strlen(PRINT), hash);
	out->id = key->id;
	(void)memcpy(out->print, hash, KEY_PRINT - 1);
	out->print[KEY_PRINT - 1] = '\0';
}
