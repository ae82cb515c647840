// SPDX-License-Identifier: GPL-2.0
/* See notify.h. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "notify.h"

static struct sockaddr_un address;
static socklen_t address_len;

void notify_start(void)
{
	const char *name = getenv("NOTIFY_SOCKET");

	if (!name || !name[0] || !name[1] || strlen(name) >= sizeof(address.sun_path))
		return;
	address.sun_family = AF_UNIX;
	strcpy(address.sun_path, name);
	address_len = offsetof(struct sockaddr_un, sun_path) + strlen(name);
	/* an abstract name */
	if (*name == '@')
		address.sun_path[0] = '\0';
}

void notify_say(const char *text)
{
	int fd;

	if (!address_len)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address, address_len);
	close(fd);
}
