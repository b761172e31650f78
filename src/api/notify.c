/* SPDX-License-Identifier: ISC */
#include "api/notify.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"

void
notify_send(const char *state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len;
	int fd;

	if (path == NULL || (path[0] != '/' && path[0] != '@'))
		return;
	if ((len = strlen(path)) >= sizeof(sun.sun_path))
		return;
	(void)memcpy(sun.sun_path, path, len);
	if (path[0] == '@')
		sun.sun_path[0] = '\0';
	if ((fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) == -1)
		return;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL,
		(const struct sockaddr *)&sun,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) ==
	    -1)
		log_warn("%s: %s", path, strerror(errno));
	(void)close(fd);
}
