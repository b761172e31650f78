/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/str.h"
#include "live/gaps.h"
#include "live/live.h"

#define TURN_ARENA ((size_t)4 << 20)
#define TURN_MS 20   /* at least, between two reads */
#define POLL_MS 1000 /* at most, in case a change is not announced */
/* A change that polling finds comes from another host, whose next changes will
 * not be announced either. */
#define QUICK_POLL_MS 100
#define QUICK_MS 60000
#define CHECK_MS 20000  /* between two checks of the credentials */
#define FORGET_MS 60000 /* without a turn, the known states are out of date */
#define RING 1024       /* events that a client can catch up with */
#define MARKS 4096      /* clients that got the state and can catch up */
#define TEXT_MAX 256
#define KNOWN_MAX (CHANGE_MAX + 4096) /* with those that clients name */
#define IDS_MAX ((size_t)256 * 1024)
#define FAULT "reading changes"

/* What has changed. */
struct about {
	int64_t project_id;
	int64_t deployment_id;
	bool only_grew; /* nothing but the size of its log */
};

/* The state of a deployment that was sent last. */
struct known {
	struct about about;
	char status[16]; /* "" = not read yet */
	int64_t version;
	int64_t log_size;
	bool ended;
};

/* The id of an event is random: a number would show how much happens in projects
 * that the listener may not see. */
#define ID_SIZE 17

struct event {
	char id[ID_SIZE];
	int64_t at; /* monotonic ms; when it was read */
	struct about about;
	char text[TEXT_MAX];
};

/* The state that a client got is that after an event, under an id of its own. */
struct mark {
	char id[ID_SIZE];
	int64_t number; /* of the event */
};

struct feed {
	struct db *db;
	struct session_term term;
	struct arena *a;
	struct known known[KNOWN_MAX]; /* by id: can still change */
	size_t n;
	int64_t newest; /* deployment; -1 = nothing was read yet */
	struct gaps gaps;
	int64_t based; /* monotonic ms; since then every change is an event */
	struct event ring[RING];
	int64_t events; /* number of the last one */
	struct mark marks[MARKS];
	int64_t marked; /* number of the last one */
	int64_t checked;
	int64_t turned; /* time of the last turn */
	int64_t quick;  /* until then poll often */
	bool polls;     /* nothing but the time causes the next turn */
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
	return f;
}

/* Whether the client, a guest, is a member of the project. */
static bool
is_listed(const struct client *client, int64_t project_id)
{
	char text[24];

	(void)snprintf(text, sizeof(text), ",%lld,", (long long)project_id);
	return strstr(client->projects.data, text) != NULL;
}

/* Whether a change concerns the client. One that waits for a deployment of a
 * named project waits for its turn, too: other deployments that move. */
static bool
is_for(const struct client *client, const struct about *about)
{
	const struct scope *s = &client->scope;

	if (!client->begun || client->state == CLIENT_ENDED ||
	    (s->is_guest && !is_listed(client, about->project_id)))
		return false;
	if (s->deployment_id == about->deployment_id)
		return true;
	if (!s->waits && s->deployment_id != 0)
		return false;
	if (s->project_id == 0)
		return s->deployment_id == 0;
	return s->project_id == about->project_id &&
	    (s->deployment_id == 0 || !about->only_grew);
}

static void
id_make(char out[ID_SIZE])
{
	uint64_t id;

	arc4random_buf(&id, sizeof(id));
	(void)snprintf(out, ID_SIZE, "%016llx", (unsigned long long)id);
}

static void
event_write(const struct known *k, const char *id, char *text)
{
	(void)snprintf(text, TEXT_MAX,
	    "id: %s\nevent: deployment\ndata: {\"id\":%lld,"
	    "\"status\":\"%s\",\"version\":%lld,\"logSize\":%lld}\n\n",
	    id, (long long)k->about.deployment_id, k->status,
	    (long long)k->version, (long long)k->log_size);
}

/* Whether a wait for a log is over. */
static bool
has_more(const struct client *client, const struct known *k)
{
	return k->log_size > client->scope.from || k->ended;
}

/* Sends an event to all that listen for it or wait for it. */
static void
event_send(struct feed *f, struct clients *c, const struct known *k)
{
	struct event *event = &f->ring[++f->events % RING];
	struct client *client;
	char id[ID_SIZE];

	event->at = time_mono_ms();
	event->about = k->about;
	id_make(id);
	(void)memcpy(event->id, id, sizeof(id));
	event_write(k, id, event->text);
	for (client = c->first; client != NULL; client = client->next) {
		if (!is_for(client, &k->about))
			continue;
		if (client->state == CLIENT_STREAM)
			client_send(client, event->text, strlen(event->text));
		else if (client->scope.from == -1 || has_more(client, k))
			client->state = CLIENT_READY;
	}
}

/* The place of a deployment in the table, or where it belongs. */
static size_t
known_at(const struct feed *f, int64_t id)
{
	size_t low = 0, high = f->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (f->known[middle].about.deployment_id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Makes a place for a deployment; NULL if `max` are known. Changes of the
 * deployment are then not sent, but clients can still read it. */
static struct known *
known_add(struct feed *f, int64_t id, size_t max)
{
	size_t at = known_at(f, id);

	if (at < f->n && f->known[at].about.deployment_id == id)
		return &f->known[at];
	if (f->n >= max)
		return NULL;
	(void)memmove(&f->known[at + 1], &f->known[at],
	    (f->n - at) * sizeof(f->known[0]));
	f->known[at] = (struct known){ .about.deployment_id = id };
	f->n++;
	return &f->known[at];
}

static void
known_drop(struct feed *f, int64_t id)
{
	size_t at = known_at(f, id);

	if (at == f->n || f->known[at].about.deployment_id != id)
		return;
	f->n--;
	(void)memmove(&f->known[at], &f->known[at + 1],
	    (f->n - at) * sizeof(f->known[0]));
}

/* Takes over a row; true if it differs from the known state. */
static bool
known_set(struct known *k, const struct change *row)
{
	k->about.only_grew = str_eq(k->status, row->status) &&
	    k->version == row->version;
	if (k->about.only_grew && k->log_size == row->log_size)
		return false;
	k->about.project_id = row->project_id;
	(void)snprintf(k->status, sizeof(k->status), "%s", row->status);
	k->version = row->version;
	k->log_size = row->log_size;
	k->ended = row->ended;
	return true;
}

/* The number of the last event that the client has seen; false if it is not
 * known. */
static bool
last_read(const struct feed *f, const char *id, int64_t *number)
{
	int64_t i;

	for (i = f->events; i > 0 && i > f->events - RING; i--)
		if (strcmp(f->ring[i % RING].id, id) == 0) {
			*number = i;
			return true;
		}
	for (i = f->marked; i > 0 && i > f->marked - MARKS; i--)
		if (strcmp(f->marks[i % MARKS].id, id) == 0) {
			*number = f->marks[i % MARKS].number;
			return f->events - *number < RING;
		}
	return false;
}

/* Sends the events after that number. */
static void
events_repeat(const struct feed *f, struct client *client, int64_t number)
{
	const struct event *event;

	while (++number <= f->events) {
		event = &f->ring[number % RING];
		if (is_for(client, &event->about))
			client_send(client, event->text, strlen(event->text));
	}
}

/* Sends the present state. */
static void
state_send(struct feed *f, struct client *client)
{
	struct mark *mark = &f->marks[++f->marked % MARKS];
	char text[TEXT_MAX], id[ID_SIZE];
	size_t i;

	id_make(id);
	(void)memcpy(mark->id, id, sizeof(id));
	mark->number = f->events;

	for (i = 0; i < f->n; i++) {
		if (f->known[i].status[0] == '\0' ||
		    !is_for(client, &f->known[i].about))
			continue;
		event_write(&f->known[i], id, text);
		client_send(client, text, strlen(text));
	}
}

/* Marks a wait for a change that was read between the state that its client has
 * and now. */
static void
change_find(const struct feed *f, struct client *client)
{
	const struct event *event;
	int64_t number;

	for (number = f->events;
	     number > 0 && number > f->events - (int64_t)RING; number--) {
		event = &f->ring[number % RING];
		if (event->at < client->scope.since)
			break;
		if (is_for(client, &event->about))
			client->state = CLIENT_READY;
	}
}

/* The one of these credentials that the client has; NULL = it has ended. */
static const struct change_watcher *
watcher_find(const struct list *valid, const struct scope *s)
{
	const struct change_watcher *w = valid->items;
	size_t i;

	for (i = 0; i < valid->n; i++)
		if (w[i].id == s->watcher_id &&
		    w[i].project_id == s->project_id &&
		    str_eq(w[i].kind, s->kind))
			return &w[i];
	return NULL;
}

/* Reads the projects that a guest may see; false if there are none. */
static bool
projects_read(struct feed *f, struct client *client)
{
	const struct change_watcher *watcher = NULL;
	char key[64];
	const struct err *e;
	struct list valid;

	(void)snprintf(key, sizeof(key), "[[\"%s\",%lld,%lld]]",
	    client->scope.kind, (long long)client->scope.watcher_id,
	    (long long)client->scope.project_id);
	e = change_watchers(f->db, f->a, key, &f->term, &valid);
	if (e != NULL)
		log_fault(e, FAULT);
	else
		watcher = watcher_find(&valid, &client->scope);
	if (watcher != NULL && watcher->projects != NULL)
		buf_puts(&client->projects, watcher->projects);
	arena_clear(f->a);
	return client->projects.len > 0 && !client->projects.overflow;
}

void
feed_wake(struct feed *f)
{
	f->polls = false;
	if (f->due > f->turned + TURN_MS)
		f->due = f->turned + TURN_MS;
}

void
feed_begin(struct client *client, void *context)
{
	struct feed *f = context;
	const struct scope *s = &client->scope;
	int64_t number;

	feed_wake(f);
	if (s->is_guest && !projects_read(f, client)) {
		client->state = CLIENT_ENDED;
		return;
	}
	if (time_mono_ms() - f->turned > FORGET_MS) {
		f->n = f->gaps.n = 0;
		f->newest = -1;
	}
	if (s->waits && s->from == -1) {
		change_find(f, client);
		return;
	}
	if (!s->waits && last_read(f, s->last_id, &number)) {
		events_repeat(f, client, number);
		return;
	}
	if (!s->waits)
		state_send(f, client);
	/* one that has ended is read once */
	if (s->deployment_id != 0)
		(void)known_add(f, s->deployment_id, KNOWN_MAX);
}

/* Takes over a row that is newer than all others. */
static void
newest_set(struct feed *f, int64_t id)
{
	gaps_add(&f->gaps, f->newest, id, f->turned);
	f->newest = id;
}

/* Reads the state from which on changes are known. */
static const struct err *
first_read(struct feed *f, struct list *out)
{
	const struct change *row;
	const struct err *e;
	struct list newest;
	size_t i;

	if ((e = change_newest(f->db, f->a, &newest)) != NULL ||
	    (e = change_open(f->db, f->a, out)) != NULL)
		return e;
	row = newest.items;
	f->newest = newest.n == 0 ? 0 : row[0].id;
	for (i = 1; i < newest.n; i++)
		newest_set(f, row[i].id);
	f->based = time_mono_ms();
	return NULL;
}

static void
ids_add(struct buf *ids, int64_t id)
{
	buf_printf(ids, "%s%lld", ids->len > 1 ? "," : "", (long long)id);
}

static const struct err *
rows_read(struct feed *f, struct list *out)
{
	const struct err *e;
	struct buf ids;
	size_t i;

	*out = (struct list){ .n = 0 };
	if (f->newest == -1)
		return first_read(f, out);
	buf_init(&ids, IDS_MAX);
	buf_putc(&ids, '[');
	for (i = 0; i < f->n; i++)
		ids_add(&ids, f->known[i].about.deployment_id);
	gaps_expire(&f->gaps, f->turned);
	for (i = 0; i < f->gaps.n; i++)
		ids_add(&ids, f->gaps.all[i].id);
	buf_putc(&ids, ']');
	if ((e = buf_check(&ids)) == NULL)
		e = change_read(f->db, f->a, ids.data, f->newest, out);
	buf_release(&ids);
	return e;
}

/* Marks the waits that came before the last read and are over by it: for a log
 * that is longer, or of an unknown deployment; or for a change that the read
 * cannot show, because nothing was known before. */
static void
waits_check(const struct feed *f, struct clients *c)
{
	struct client *client;
	size_t at;

	for (client = c->first; client != NULL; client = client->next) {
		if (client->state != CLIENT_FRESH)
			continue;
		client->state = CLIENT_WAIT;
		at = known_at(f, client->scope.deployment_id);
		if (client->scope.from == -1 ? f->based >= client->scope.since :
					       at == f->n ||
			    f->known[at].about.deployment_id !=
				client->scope.deployment_id ||
			    has_more(client, &f->known[at]))
			client->state = CLIENT_READY;
	}
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
			newest_set(f, row[i].id);
		else
			gaps_close(&f->gaps, row[i].id);
		if ((k = known_add(f, row[i].id, CHANGE_MAX)) != NULL &&
		    known_set(k, &row[i]))
			event_send(f, c, k);
		if (row[i].ended)
			known_drop(f, row[i].id);
	}
	waits_check(f, c);
	return NULL;
}

/* Whether the client may still see the same project or projects as at its
 * beginning. */
static bool
is_valid(const struct list *valid, const struct client *client)
{
	const struct change_watcher *w = watcher_find(valid, &client->scope);

	return w != NULL &&
	    (client->scope.project_id != 0 ||
		str_eq(w->projects,
		    client->scope.is_guest ? client->projects.data : NULL));
}

/* Ends the streams whose credential has ended or lost its role, or whose user
 * may see other projects than before. */
static const struct err *
watchers_check(struct feed *f, struct clients *c)
{
	struct client *client;
	const struct err *e;
	struct list valid;
	struct buf keys;

	buf_init(&keys, IDS_MAX);
	buf_putc(&keys, '[');
	for (client = c->first; client != NULL; client = client->next)
		if (client->state == CLIENT_STREAM)
			buf_printf(&keys, "%s[\"%s\",%lld,%lld]",
			    keys.len > 1 ? "," : "", client->scope.kind,
			    (long long)client->scope.watcher_id,
			    (long long)client->scope.project_id);
	buf_putc(&keys, ']');
	if ((e = buf_check(&keys)) == NULL)
		e = change_watchers(f->db, f->a, keys.data, &f->term, &valid);
	buf_release(&keys);
	for (client = c->first; e == NULL && client != NULL;
	     client = client->next)
		if (client->state == CLIENT_STREAM && !is_valid(&valid, client))
			client->state = CLIENT_ENDED;
	return e;
}

/* Everything that is due. */
static const struct err *
feed_work(struct feed *f, struct clients *c)
{
	const struct err *e = NULL;
	const int64_t before = f->events;

	if (f->turned - f->checked >= CHECK_MS) {
		f->checked = f->turned;
		e = watchers_check(f, c);
	}
	if (e == NULL)
		e = changes_read(f, c);
	arena_clear(f->a);
	if (f->polls && f->events > before)
		f->quick = f->turned + QUICK_MS;
	return e;
}

int
feed_turn(struct feed *f, struct clients *c)
{
	const struct err *e;
	const int64_t now = time_mono_ms();

	if (c->begun == 0)
		return -1;
	if (now < f->due)
		return (int)(f->due - now);
	f->turned = now;
	if ((e = feed_work(f, c)) != NULL)
		log_fault(e, FAULT);
	else
		log_fault_over(FAULT);
	f->polls = true;
	f->due = now + (e != NULL || now >= f->quick ? POLL_MS : QUICK_POLL_MS);
	return (int)(f->due - now);
}
