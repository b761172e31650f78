/* SPDX-License-Identifier: ISC */
#include <sys/epoll.h>
#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/str.h"
#include "core/wake.h"
#include "live/live.h"

#define CLIENTS_MAX 4096
#define REQUEST_MAX ((size_t)4096)
#define QUEUE_MAX ((size_t)128 * 1024)
#define PROJECTS_MAX ((size_t)256 * 1024)
#define EVENTS 64
#define REQUEST_MS 10000 /* time to send a request */
#define PING_MS 15000
#define AGE_MS 600000 /* so that the next request is authorized again */
/* A worker serves each wait that is returned, and the next one of the same
 * client, so a thousand of them at once would delay other requests. A client that
 * returns later misses nothing: it gets all that has come until then. */
#define RETURN_MAX 4
#define RETURN_MS 10

static const char head[] = "HTTP/1.0 200 OK\r\n"
			   "Content-Type: text/event-stream\r\n"
			   "\r\n"
			   "retry: 2000\n\n";

const struct err *
clients_open(struct clients *c, int listen_fd, int wake_fd, size_t user_max)
{
	struct epoll_event event = { .events = EPOLLIN };

	*c = (struct clients){ .listen_fd = listen_fd,
		.wake_fd = wake_fd,
		.user_max = user_max,
		.end = &c->first };
	(void)sigemptyset(&c->mask);
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll == -1 ||
	    epoll_ctl(c->epoll, EPOLL_CTL_ADD, listen_fd, &event) == -1)
		return err_errno("epoll");
	return NULL;
}

static void
client_add(struct clients *c, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP };
	struct client *client;

	if (c->n == CLIENTS_MAX) {
		log_warn("there are %zu clients: another one is rejected",
		    c->n);
		(void)close(fd);
		return;
	}
	client = mem_alloc(1, sizeof(*client));
	*client = (struct client){ .fd = fd, .opened = time_mono_ms() };
	buf_init(&client->in, REQUEST_MAX);
	buf_init(&client->out, QUEUE_MAX);
	buf_init(&client->projects, PROJECTS_MAX);
	*c->end = client;
	c->end = &client->next;
	c->n++;
	event.data.ptr = client;
	if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event) == -1)
		client->state = CLIENT_ENDED;
}

static void
clients_accept(struct clients *c)
{
	int fd, i;

	for (i = 0; i < EVENTS; i++) {
		fd = accept4(c->listen_fd, NULL, NULL,
		    SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd == -1)
			return;
		client_add(c, fd);
	}
}

void
client_send(struct client *client, const char *text, size_t len)
{
	buf_add(&client->out, text, len);
	if (client->out.overflow)
		client->state = CLIENT_ENDED;
}

static void
client_begin(struct clients *c, struct client *client)
{
	buf_release(&client->in);
	client->begun = true;
	c->begun++;
	client->opened = client->pinged = time_mono_ms();
	if (client->scope.waits) {
		client->state = CLIENT_FRESH;
		return;
	}
	client->state = CLIENT_STREAM;
	client_send(client, head, sizeof(head) - 1);
}

/* Whether its user has as many other clients as a user may. */
static bool
is_crowded(const struct clients *c, const struct client *client)
{
	const struct client *other;
	size_t n = 0;

	for (other = c->first; other != NULL; other = other->next)
		n += other->begun && other->state != CLIENT_ENDED &&
		    other->scope.user_id == client->scope.user_id;
	return n >= c->user_max;
}

static void
client_reject(struct client *client)
{
	static const char text[] = "HTTP/1.0 429 Too Many Requests\r\n"
				   "Content-Length: 0\r\n\r\n";

	(void)send(client->fd, text, sizeof(text) - 1,
	    MSG_NOSIGNAL | MSG_DONTWAIT);
	client->state = CLIENT_ENDED;
}

/* Reads the request; afterwards nginx sends nothing more. */
static void
client_read(struct clients *c, struct client *client,
    void (*begin)(struct client *, void *), void *context)
{
	char piece[1024];
	ssize_t n = recv(client->fd, piece, sizeof(piece), 0);

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && client->state == CLIENT_NEW)
		buf_add(&client->in, piece, (size_t)n);
	if (n <= 0 || client->state != CLIENT_NEW || client->in.overflow) {
		client->state = CLIENT_ENDED;
		return;
	}
	if (strstr(client->in.data, "\r\n\r\n") == NULL)
		return;
	if (!request_read(client->in.data, &client->scope)) {
		log_warn("a client sent a request that is not from nginx");
		client->state = CLIENT_ENDED;
		return;
	}
	if (is_crowded(c, client)) {
		client_reject(client);
		return;
	}
	client_begin(c, client);
	begin(client, context);
}

/* Without clients, changes must not wake the process. */
static void
wake_hear(struct clients *c)
{
	struct epoll_event event = { .events = EPOLLIN,
		.data.ptr = &c->wake_fd };
	const bool hears = c->begun > 0;

	if (c->wake_fd == -1 || hears == c->hears)
		return;
	if (epoll_ctl(c->epoll, hears ? EPOLL_CTL_ADD : EPOLL_CTL_DEL,
		c->wake_fd, &event) == 0)
		c->hears = hears;
}

bool
clients_wait(struct clients *c, int ms, void (*begin)(struct client *, void *),
    void *context)
{
	struct epoll_event events[EVENTS];
	const int64_t left = c->due - time_mono_ms();
	struct client *client;
	bool woken = false;
	int n, i;

	wake_hear(c);
	if (c->n > 0 && (ms == -1 || left < ms))
		ms = left < 0 ? 0 : (int)left;
	n = epoll_pwait(c->epoll, events, EVENTS, ms, &c->mask);
	for (i = 0; i < n; i++) {
		client = events[i].data.ptr;
		if (client == NULL)
			clients_accept(c);
		else if (events[i].data.ptr == &c->wake_fd)
			woken = wake_drain(c->wake_fd);
		else if ((events[i].events & (EPOLLRDHUP | EPOLLHUP)) != 0)
			client->state = CLIENT_ENDED;
		else if (client->state != CLIENT_ENDED)
			client_read(c, client, begin, context);
	}
	return woken;
}

/* Hands a waiting request back to a worker. One that waited for a log has
 * nothing left to wait for; another one may find that the change does not
 * concern it. */
static void
wait_return(struct client *client, int64_t left)
{
	const struct scope *s = &client->scope;
	char text[160];
	int len;

	len = snprintf(text, sizeof(text),
	    "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n"
	    "X-Accel-Redirect: /.slipway/now?left=%lld&again=%lld\r\n\r\n",
	    (long long)(s->from == -1 && left > 0 ? left : 0),
	    (long long)s->again);
	(void)send(client->fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
	client->state = CLIENT_ENDED;
}

static void
stream_flush(struct client *client, int64_t now)
{
	ssize_t n;

	if (now - client->pinged >= PING_MS)
		client_send(client, ":\n\n", 3);
	if (client->out.len == 0 || client->out.overflow)
		return;
	n = send(client->fd, client->out.data, client->out.len,
	    MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n == -1 && errno != EAGAIN && errno != EINTR)
		client->state = CLIENT_ENDED;
	if (n <= 0)
		return;
	client->pinged = now;
	if ((size_t)n == client->out.len)
		buf_release(&client->out);
	else
		buf_drop(&client->out, (size_t)n);
}

/* How long the client may stay. */
static int64_t
client_term(const struct client *client)
{
	switch (client->state) {
	case CLIENT_NEW:
		return REQUEST_MS;
	case CLIENT_STREAM:
		return AGE_MS;
	case CLIENT_FRESH:
	case CLIENT_WAIT:
	case CLIENT_READY:
		return client->scope.ms;
	case CLIENT_ENDED:
		break;
	}
	return 0;
}

/* `room` is how many waits may be returned now. */
static void
client_flush(struct clients *c, struct client *client, int64_t now, int *room)
{
	const int64_t left = client->opened + client_term(client) - now;
	int64_t due = now + left;
	const bool waits = client->scope.waits;

	if (waits && (left <= 0 || client->state == CLIENT_READY)) {
		if (--*room >= 0)
			wait_return(client, left);
	} else if (left <= 0) {
		client->state = CLIENT_ENDED;
	} else if (client->state == CLIENT_STREAM) {
		stream_flush(client, now);
		if (client->pinged + PING_MS < due)
			due = client->pinged + PING_MS;
	}
	if (due > now && due < c->due)
		c->due = due;
}

static void
client_close(struct clients *c, struct client *client)
{
	c->n--;
	c->begun -= client->begun;
	(void)close(client->fd);
	buf_release(&client->in);
	buf_release(&client->out);
	buf_release(&client->projects);
	mem_free(client);
}

void
clients_flush(struct clients *c)
{
	struct client **at = &c->first, *client;
	const int64_t now = time_mono_ms();
	const bool returns = now - c->returned >= RETURN_MS;
	int room = returns ? RETURN_MAX : 0;

	c->due = now + PING_MS;
	while ((client = *at) != NULL) {
		if (client->state != CLIENT_ENDED)
			client_flush(c, client, now, &room);
		if (client->state == CLIENT_ENDED) {
			*at = client->next;
			client_close(c, client);
		} else {
			at = &client->next;
		}
	}
	c->end = at;
	if (returns && room < RETURN_MAX)
		c->returned = now;
	if (room < 0)
		c->due = c->returned + RETURN_MS;
}

void
clients_close(struct clients *c)
{
	struct client *client;

	while ((client = c->first) != NULL) {
		c->first = client->next;
		client_close(c, client);
	}
	(void)close(c->epoll);
	(void)close(c->listen_fd);
	if (c->wake_fd != -1)
		(void)close(c->wake_fd);
}
