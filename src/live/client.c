/* SPDX-License-Identifier: ISC */
#include <sys/epoll.h>
#include <sys/socket.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/str.h"
#include "live/live.h"

#define CLIENTS_MAX 4096
#define REQUEST_MAX ((size_t)4096)
#define QUEUE_MAX ((size_t)128 * 1024)
#define EVENTS 64
#define REQUEST_MS 10000 /* time to send a request */
#define PING_MS 15000
#define AGE_MS 600000 /* so that the next request is authorized again */

static const char head[] = "HTTP/1.0 200 OK\r\n"
			   "Content-Type: text/event-stream\r\n"
			   "\r\n"
			   "retry: 2000\n\n";

const struct err *
clients_open(struct clients *c, int listen_fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	*c = (struct clients){ .listen_fd = listen_fd };
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll == -1 ||
	    epoll_ctl(c->epoll, EPOLL_CTL_ADD, listen_fd, &event) == -1)
		return err_errno("epoll");
	return NULL;
}

static void
client_accept(struct clients *c)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP };
	struct client *client;
	int fd;

	fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd == -1)
		return;
	if (c->n == CLIENTS_MAX) {
		log_warn("%zu clients listen: another one is rejected", c->n);
		(void)close(fd);
		return;
	}
	client = mem_alloc(1, sizeof(*client));
	*client = (struct client){ .fd = fd, .opened = time_mono_ms() };
	buf_init(&client->in, REQUEST_MAX);
	buf_init(&client->out, QUEUE_MAX);
	client->next = c->first;
	c->first = client;
	c->n++;
	event.data.ptr = client;
	if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event) == -1)
		client->ended = true;
}

void
client_send(struct client *client, const char *text, size_t len)
{
	buf_add(&client->out, text, len);
	if (client->out.overflow)
		client->ended = true;
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
	if (n <= 0 || client->streams) {
		client->ended = true;
		return;
	}
	buf_add(&client->in, piece, (size_t)n);
	if (client->in.overflow) {
		client->ended = true;
		return;
	}
	if (strstr(client->in.data, "\r\n\r\n") == NULL)
		return;
	if (!request_read(client->in.data, &client->scope)) {
		log_warn("a client sent no request of nginx");
		client->ended = true;
		return;
	}
	buf_release(&client->in);
	client->streams = true;
	client->pinged = time_mono_ms();
	c->streams++;
	client_send(client, head, sizeof(head) - 1);
	begin(client, context);
}

void
clients_wait(struct clients *c, int ms, void (*begin)(struct client *, void *),
    void *context)
{
	struct epoll_event events[EVENTS];
	struct client *client;
	int n, i;

	n = epoll_wait(c->epoll, events, EVENTS, ms);
	for (i = 0; i < n; i++) {
		client = events[i].data.ptr;
		if (client == NULL)
			client_accept(c);
		else if ((events[i].events & (EPOLLRDHUP | EPOLLHUP)) != 0)
			client->ended = true;
		else if (!client->ended)
			client_read(c, client, begin, context);
	}
}

static void
client_flush(struct client *client, int64_t now)
{
	ssize_t n;

	if (client->streams && now - client->pinged >= PING_MS)
		client_send(client, ":\n\n", 3);
	if (now - client->opened >= (client->streams ? AGE_MS : REQUEST_MS))
		client->ended = true;
	if (client->out.len == 0 || client->out.overflow)
		return;
	n = send(client->fd, client->out.data, client->out.len,
	    MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n == -1 && errno != EAGAIN && errno != EINTR)
		client->ended = true;
	if (n <= 0)
		return;
	client->pinged = now;
	if ((size_t)n == client->out.len)
		buf_release(&client->out);
	else
		buf_drop(&client->out, (size_t)n);
}

static void
client_close(struct clients *c, struct client *client)
{
	c->n--;
	c->streams -= client->streams;
	(void)close(client->fd);
	buf_release(&client->in);
	buf_release(&client->out);
	mem_free(client);
}

void
clients_flush(struct clients *c)
{
	struct client **at = &c->first, *client;
	const int64_t now = time_mono_ms();

	while ((client = *at) != NULL) {
		client_flush(client, now);
		if (client->ended) {
			*at = client->next;
			client_close(c, client);
		} else {
			at = &client->next;
		}
	}
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
}
