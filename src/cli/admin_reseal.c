/* SPDX-License-Identifier: ISC */
#include "cli/admin_reseal.h"

#include <err.h>
#include <stdio.h>
#include <string.h>

#include "core/buf.h"
#include "core/str.h"
#include "crypto/private_keyring.h"
#include "json/json.h"
#include "store/sealed.h"

#define PAGE_ARENA ((size_t)1 << 20)
#define WORK_ARENA                                                             \
	((size_t)64 << 20) /* memory for a batch and the largest
				       * row */
#define BATCH_ROWS 32
#define BATCH_BYTES ((size_t)1 << 20)
#define ROUNDS 5 /* attempts for a row that others change meanwhile */

struct tally {
	int64_t values;
	int64_t older; /* decrypted with an older key */
	int64_t unopened;
	int64_t on[KEYRING_KEYS];
};

/* A processed row. It is counted only after it is stored. */
struct seen {
	struct sealed_row row, old,
	    fresh; /* as found, as read, as it becomes */
	struct tally tally;
	bool changed; /* there is something to store */
	bool done;
};

struct walk {
	struct reseal *r;
	const struct sealed_place *place;
	struct reseal_keys *keys;
	unsigned flags;
	struct arena *page, *work;
	struct seen batch[BATCH_ROWS];
	size_t n;
	struct tally tally;
};

static void
tally_add(struct tally *to, const struct tally *more)
{
	size_t i;

	to->values += more->values;
	to->older += more->older;
	to->unopened += more->unopened;
	for (i = 0; i < KEYRING_KEYS; i++)
		to->on[i] += more->on[i];
}

/* Reports a value so that an administrator can find it. */
static const struct err *
unopened(struct walk *w, struct seen *s, const char *name, const char *why)
{
	const struct err *e;
	const char *label;

	s->tally.unopened++;
	if ((w->flags & RESEAL_QUIET) != 0)
		return NULL;
	why = arena_strdup(w->work, why);
	e = sealed_label(w->r->db, w->work, w->place, &s->old, &label);
	if (e == NULL)
		warnx("%s",
		    str_visible(w->work,
			arena_printf(w->work, "%s%s%s: %s", label,
			    name == NULL ? "" : ", variable ",
			    name == NULL ? "" : name, why)));
	return e;
}

/* The index of the key; n if it is unknown. */
static size_t
key_find(const struct reseal_keys *k, int64_t id)
{
	size_t i;

	for (i = 0; i < k->n && k->name[i].id != id; i++)
		;
	return i;
}

/* Counts a value; `old` is set if it must be decrypted. */
static bool
value_old(struct walk *w, struct seen *s, int64_t key)
{
	s->tally.values++;
	if (key_find(w->keys, key) != 0)
		return true;
	s->tally.on[0]++;
	return false;
}

/* Counts a decrypted value: it depends on that key until it is stored again. */
static void
value_opened(struct walk *w, struct seen *s, int64_t key)
{
	s->tally.older++;
	s->changed = true;
	if ((w->flags & RESEAL_WRITE) != 0)
		s->tally.on[0]++;
	else
		s->tally.on[key_find(w->keys, key)]++;
}

/* The label identifies the value better. */
static const char *
without(const char *purpose, const char *text)
{
	return str_starts(text, purpose) &&
		str_starts(text + strlen(purpose), ": ") ?
	    text + strlen(purpose) + 2 :
	    text;
}

static const struct err *
bytes_seal(struct walk *w, struct seen *s)
{
	const char *purpose = w->place->purpose(w->work, &s->old, NULL);
	const int64_t key = keyring_sealed_with(s->old.value);
	const struct err *e;

	if (!value_old(w, s, key))
		return NULL;
	e = keyring_reseal(w->r->keyring, w->work, purpose, s->old.value,
	    &s->fresh.value);
	if (e != NULL)
		return unopened(w, s, NULL, without(purpose, e->msg));
	value_opened(w, s, key);
	return NULL;
}

/* The variable's name, after the prefix of the trigger. */
static const char *
variable(const struct sealed_place *place, const char *key)
{
	const char *blank = strchr(key, ' ');

	return place->form == SEALED_PREFIXED && blank != NULL ? blank + 1 :
								 key;
}

static const struct err *
object_write(struct walk *w, const struct map *pairs, struct seen *s)
{
	const struct err *e;
	struct buf text;

	buf_init(&text, SEALED_SIZE_MAX + 1);
	json_write_map(&text, pairs);
	if ((e = buf_check(&text)) == NULL)
		s->fresh.object.s = arena_strndup(w->work, text.data, text.len);
	buf_release(&text);
	return e;
}

static const struct err *
object_seal(struct walk *w, struct seen *s)
{
	const struct err *e;
	const char *name, *fresh;
	struct pair *pair;
	struct map pairs;
	int64_t key;
	size_t i;

	if ((e = json_map(w->work, s->old.object.s, &pairs)) != NULL)
		return unopened(w, s, NULL, e->msg);
	pair = pairs.items;
	for (i = 0; i < pairs.n; i++) {
		if (pair[i].value == NULL)
			continue;
		key = public_key_sealed_with(w->work, pair[i].value);
		if (!value_old(w, s, key))
			continue;
		name = variable(w->place, pair[i].key);
		e = private_keyring_reseal(w->r->private_keyring,
		    w->r->public_key, w->work,
		    w->place->purpose(w->work, &s->old, name), pair[i].value,
		    &fresh);
		if (e != NULL && (e = unopened(w, s, name, e->msg)) != NULL)
			return e;
		if (fresh == NULL)
			continue;
		value_opened(w, s, key);
		pair[i].value = fresh;
	}
	return s->changed ? object_write(w, &pairs, s) : NULL;
}

static const struct err *
text_seal(struct walk *w, struct seen *s)
{
	const char *purpose = w->place->purpose(w->work, &s->old, NULL);
	const char *sealed = s->old.object.s;
	const int64_t key = public_key_sealed_with(w->work, sealed);
	const struct err *e;

	if (!value_old(w, s, key))
		return NULL;
	e = private_keyring_reseal(w->r->private_keyring, w->r->public_key,
	    w->work, purpose, sealed, &s->fresh.object.s);
	if (e != NULL)
		return unopened(w, s, NULL, without(purpose, e->msg));
	value_opened(w, s, key);
	return NULL;
}

/* Adds the row to the batch, unless it was deleted. */
static const struct err *
row_look(struct walk *w, const struct sealed_row *row)
{
	struct seen *s = &w->batch[w->n];
	const struct err *e;

	*s = (struct seen){ .row = *row, .old = *row };
	if (row->size.n > (int64_t)SEALED_SIZE_MAX) {
		w->n++;
		s->tally.values++;
		return unopened(w, s, NULL, "too large for a sealed value");
	}
	e = sealed_read(w->r->db, w->work, w->place, row, &s->old);
	if (e != NULL && e->code == ERR_NOTFOUND)
		return NULL;
	if (e != NULL)
		return e;
	w->n++;
	switch (w->place->form) {
	case SEALED_BYTES:
		return bytes_seal(w, s);
	case SEALED_TEXT:
		return text_seal(w, s);
	case SEALED_NAMED:
	case SEALED_PREFIXED:
		break;
	}
	return object_seal(w, s);
}

static const struct err *
batch_body(struct db *db, void *context)
{
	struct walk *w = context;
	const struct err *e = NULL;
	struct seen *s;

	for (s = w->batch; s < w->batch + w->n && e == NULL; s++)
		if (s->changed)
			e = sealed_put(db, w->place, &s->old, &s->fresh,
			    &s->done);
	return e;
}

static bool
batch_changed(const struct walk *w)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (w->batch[i].changed)
			return true;
	return false;
}

/* Stores the batch, and keeps the rows that others changed meanwhile. */
static const struct err *
batch_store(struct walk *w, struct sealed_row *rows, size_t *left)
{
	const bool write = (w->flags & RESEAL_WRITE) != 0;
	const struct err *e = NULL;
	struct seen *s;

	if (write && batch_changed(w))
		e = db_transaction(w->r->db, batch_body, w);
	for (s = w->batch; e == NULL && s < w->batch + w->n; s++)
		if (!write || !s->changed || s->done)
			tally_add(&w->tally, &s->tally);
		else
			rows[(*left)++] = s->row;
	w->n = 0;
	return e;
}

/* Processes the rows of a page that have a value, then those that were
 * missed. */
static const struct err *
page_do(struct walk *w, struct sealed_row *rows, size_t n)
{
	const struct err *e = NULL;
	size_t i, left, round;

	for (round = 0; round < ROUNDS && n > 0; round++) {
		for (i = left = 0; i < n && e == NULL; i++) {
			if (rows[i].size.set)
				e = row_look(w, &rows[i]);
			if (e == NULL &&
			    (i + 1 == n || w->n == BATCH_ROWS ||
				arena_used(w->work) > BATCH_BYTES)) {
				e = batch_store(w, rows, &left);
				arena_clear(w->work);
			}
		}
		if (e != NULL)
			return e;
		n = left;
	}
	w->r->missed += (int64_t)n;
	return NULL;
}

static const struct err *
place_do(struct walk *w)
{
	struct sealed_row *rows, last = { .id = 0 };
	const struct err *e;
	struct list list;
	char hash[128] = "";

	do {
		arena_clear(w->page);
		last.hash = hash;
		e = sealed_page(w->r->db, w->page, w->place, &last, &list);
		if (e != NULL || list.n == 0)
			return e;
		rows = list.items;
		last.id = rows[list.n - 1].id;
		if (rows[list.n - 1].hash != NULL)
			(void)snprintf(hash, sizeof(hash), "%s",
			    rows[list.n - 1].hash);
		if ((e = page_do(w, rows, list.n)) != NULL)
			return e;
	} while (list.n == SEALED_PAGE);
	return NULL;
}

static void
place_tell(const struct walk *w)
{
	const struct tally *t = &w->tally;

	if ((w->flags & RESEAL_QUIET) != 0)
		return;
	(void)printf("%s: %lld values, %lld %s", w->place->name,
	    (long long)t->values, (long long)t->older,
	    (w->flags & RESEAL_WRITE) != 0 ? "re-encrypted" : "to re-encrypt");
	if (t->unopened > 0)
		(void)printf(", %lld cannot be decrypted",
		    (long long)t->unopened);
	(void)printf("\n");
	(void)fflush(stdout);
}

void
reseal_begin(struct reseal *r)
{
	r->keys[RESEAL_KEYRING].n = keyring_names(r->keyring,
	    r->keys[RESEAL_KEYRING].name);
	r->keys[RESEAL_PRIVATE].n = private_keyring_names(r->private_keyring,
	    r->keys[RESEAL_PRIVATE].name);
}

const struct err *
reseal_run(struct reseal *r, unsigned flags)
{
	struct walk w = { .r = r,
		.flags = flags,
		.page = arena_open(PAGE_ARENA),
		.work = arena_open(WORK_ARENA) };
	const struct err *e = NULL;
	size_t i;

	r->unopened = r->missed = 0;
	for (i = 0; i < RESEAL__MAX; i++)
		(void)memset(r->keys[i].values, 0, sizeof(r->keys[i].values));
	for (w.place = sealed_places; w.place->name != NULL && e == NULL;
	     w.place++) {
		w.tally = (struct tally){ .values = 0 };
		w.keys = &r->keys[w.place->form == SEALED_BYTES ?
			RESEAL_KEYRING :
			RESEAL_PRIVATE];
		if ((e = place_do(&w)) != NULL)
			break;
		place_tell(&w);
		r->unopened += w.tally.unopened;
		for (i = 0; i < w.keys->n; i++)
			w.keys->values[i] += w.tally.on[i];
	}
	arena_close(w.page);
	arena_close(w.work);
	return e;
}

int64_t
reseal_older(const struct reseal *r)
{
	int64_t n = 0;
	size_t f, i;

	for (f = 0; f < RESEAL__MAX; f++)
		for (i = 1; i < r->keys[f].n; i++)
			n += r->keys[f].values[i];
	return n;
}
