/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/num.h"
#include "core/str.h"
#include "live/live.h"

#define TURN_ARENA ((size_t)4 << 20)
#define TURN_MS 100
#define RETRY_MS 1000   /* after an error of the database */
#define CHECK_MS 20000  /* between two checks of the credentials */
#define FORGET_MS 60000 /* without a turn, what was known is out of date */
#define RING 1024       /* events that a client can catch up with */
#define TEXT_MAX 256
#define IDS_MAX ((size_t)256 * 1024)
#define FAULT "reading changes"

/* The state of a deployment that was sent last. */
struct known {
	int64_t id;
	int64_t project_id;
	char status[16]; /* "" = not read yet */
	int64_t version;
	int64_t log_size;
};

struct event {
	int64_t number;
	int64_t project_id;
	int64_t deployment_id;
	char text[TEXT_MAX];
};

struct feed {
	struct db *db;
	struct session_term term;
	struct arena *a;
	struct known known[CHANGE_MAX]; /* by id: can still change */
	size_t n;
	int64_t newest; /* deployment; -1 = nothing was read yet */
	int64_t began;  /* identifies this process in the ids of events */
	struct event ring[RING];
	int64_t events; /* number of the last one */
	int64_t checked;
	int64_t turned; /* time of the last turn */
	int64_t due;    /* monotonic ms; the next turn */
};

struct feed *
feed_open(struct db *db, const struct session_term *term)
{
	struct feed *f = mem_alloc(1, sizeof(*f));

	f->db = db;
	f->term = *term;
	f->a = arena_open(TURN_ARENA);
	f->newest = -1;
	f->began = time_now_ms();
	return f;
}

static bool
is_for(const struct client *client, int64_t project_id, int64_t deployment_id)
{
	const struct scope *s = &client->scope;

	return client->streams &&
	    (s->project_id == 0 || s->project_id == project_id) &&
	    (s->deployment_id == 0 || s->deployment_id == deployment_id);
}

static void
event_write(const struct feed *f, const struct known *k, char *text)
{
	(void)snprintf(text, TEXT_MAX,
	    "id: %lld-%lld\nevent: deployment\ndata: {\"id\":%lld,"
	    "\"status\":\"%s\",\"version\":%lld,\"logSize\":%lld}\n\n",
	    (long long)f->began, (long long)f->events, (long long)k->id,
	    k->status, (long long)k->version, (long long)k->log_size);
}

/* Sends an event to all who listen for it. */
static void
event_send(struct feed *f, struct clients *c, const struct known *k)
{
	struct event *event = &f->ring[++f->events % RING];
	struct client *client;

	event->number = f->events;
	event->project_id = k->project_id;
	event->deployment_id = k->id;
	event_write(f, k, event->text);
	for (client = c->first; client != NULL; client = client->next)
		if (is_for(client, k->project_id, k->id))
			client_send(client, event->text, strlen(event->text));
}

/* The place of a deployment in the table, or where it belongs. */
static size_t
known_at(const struct feed *f, int64_t id)
{
	size_t low = 0, high = f->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (f->known[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Makes a place for a deployment; NULL if the table is full. Then its changes
 * are not sent, but its clients read it when they like. */
static struct known *
known_add(struct feed *f, int64_t id)
{
	size_t at = known_at(f, id);

	if (at < f->n && f->known[at].id == id)
		return &f->known[at];
	if (f->n == CHANGE_MAX)
		return NULL;
	(void)memmove(&f->known[at + 1], &f->known[at],
	    (f->n - at) * sizeof(f->known[0]));
	f->known[at] = (struct known){ .id = id };
	f->n++;
	return &f->known[at];
}

static void
known_drop(struct feed *f, int64_t id)
{
	size_t at = known_at(f, id);

	if (at == f->n || f->known[at].id != id)
		return;
	f->n--;
	(void)memmove(&f->known[at], &f->known[at + 1],
	    (f->n - at) * sizeof(f->known[0]));
}

/* Takes over a row; true if it differs from what was known. */
static bool
known_set(struct known *k, const struct change *row)
{
	if (str_eq(k->status, row->status) && k->version == row->version &&
	    k->log_size == row->log_size)
		return false;
	k->project_id = row->project_id;
	(void)snprintf(k->status, sizeof(k->status), "%s", row->status);
	k->version = row->version;
	k->log_size = row->log_size;
	return true;
}

/* Whether the last event that the client has seen is in the ring. */
static bool
last_read(const struct feed *f, const char *text, int64_t *number)
{
	char began[24];

	(void)snprintf(began, sizeof(began), "%lld-", (long long)f->began);
	return str_starts(text, began) &&
	    num_parse(text + strlen(began), 0, f->events, number) &&
	    f->events - *number < RING;
}

void
feed_begin(struct client *client, void *context)
{
	struct feed *f = context;
	const struct event *event;
	char text[TEXT_MAX];
	int64_t number;
	size_t i;

	f->due = 0;
	if (time_mono_ms() - f->turned > FORGET_MS) {
		f->n = 0;
		f->newest = -1;
	}
	if (last_read(f, client->scope.last_id, &number)) {
		while (++number <= f->events) {
			event = &f->ring[number % RING];
			if (is_for(client, event->project_id,
				event->deployment_id))
				client_send(client, event->text,
				    strlen(event->text));
		}
		return;
	}
	for (i = 0; i < f->n; i++) {
		if (f->known[i].status[0] == '\0' ||
		    !is_for(client, f->known[i].project_id, f->known[i].id))
			continue;
		event_write(f, &f->known[i], text);
		client_send(client, text, strlen(text));
	}
	/* one that has ended is read once */
	if (client->scope.deployment_id != 0)
		(void)known_add(f, client->scope.deployment_id);
}

static const struct err *
rows_read(struct feed *f, struct list *out)
{
	const struct err *e;
	struct buf ids;
	size_t i;

	*out = (struct list){ .n = 0 };
	if (f->newest == -1) {
		if ((e = change_newest(f->db, f->a, &f->newest)) != NULL)
			f->newest = -1;
		return e != NULL ? e : change_open(f->db, f->a, out);
	}
	buf_init(&ids, IDS_MAX);
	buf_putc(&ids, '[');
	for (i = 0; i < f->n; i++)
		buf_printf(&ids, "%s%lld", i > 0 ? "," : "",
		    (long long)f->known[i].id);
	buf_putc(&ids, ']');
	if ((e = buf_check(&ids)) == NULL)
		e = change_read(f->db, f->a, ids.data, f->newest, out);
	buf_release(&ids);
	return e;
}

static const struct err *
changes_read(struct feed *f, struct clients *c)
{
	const struct change *row;
	const struct err *e;
	struct known *k;
	struct list list;
	size_t i;

	if ((e = rows_read(f, &list)) != NULL)
		return e;
	row = list.items;
	for (i = 0; i < list.n; i++) {
		if (row[i].id > f->newest)
			f->newest = row[i].id;
		if ((k = known_add(f, row[i].id)) != NULL &&
		    known_set(k, &row[i]))
			event_send(f, c, k);
		if (row[i].ended)
			known_drop(f, row[i].id);
	}
	return NULL;
}

static bool
is_valid(const struct list *valid, const struct scope *s)
{
	const struct change_watcher *w = valid->items;
	size_t i;

	for (i = 0; i < valid->n; i++)
		if (w[i].id == s->watcher_id && str_eq(w[i].kind, s->kind))
			return true;
	return false;
}

/* Ends the streams whose credential has ended. */
static const struct err *
watchers_check(struct feed *f, struct clients *c)
{
	struct client *client;
	const struct err *e;
	struct list valid;
	struct buf keys;

	buf_init(&keys, IDS_MAX);
	for (client = c->first; client != NULL; client = client->next)
		if (client->streams)
			buf_printf(&keys, "%c[\"%s\",%lld]",
			    keys.len == 0 ? '[' : ',', client->scope.kind,
			    (long long)client->scope.watcher_id);
	buf_putc(&keys, ']');
	if ((e = buf_check(&keys)) == NULL)
		e = change_watchers(f->db, f->a, keys.data, &f->term, &valid);
	buf_release(&keys);
	for (client = c->first; e == NULL && client != NULL;
	     client = client->next)
		if (client->streams && !is_valid(&valid, &client->scope))
			client->ended = true;
	return e;
}

int
feed_turn(struct feed *f, struct clients *c)
{
	const struct err *e = NULL;
	int64_t now = time_mono_ms();

	if (c->streams == 0)
		return c->n == 0 ? -1 : RETRY_MS;
	if (now < f->due)
		return (int)(f->due - now);
	if (now - f->checked >= CHECK_MS) {
		f->checked = now;
		e = watchers_check(f, c);
	}
	if (e == NULL)
		e = changes_read(f, c);
	arena_clear(f->a);
	f->turned = now;
	if (e != NULL)
		log_fault(e, FAULT);
	else
		log_fault_over(FAULT);
	f->due = time_mono_ms() + (e != NULL ? RETRY_MS : TURN_MS);
	return e != NULL ? RETRY_MS : TURN_MS;
}
