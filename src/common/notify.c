// SPDX-License-Identifier: Apache-2.0
#include "common/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"

#define VARIABLE "NOTIFY_SOCKET"

// "@name" is the abstract socket of that name, whose first byte is 0.
static int address_of(const char *path, struct sockaddr_un *ret, socklen_t *ret_size)
{
	size_t len = strlen(path);

	if ((path[0] != '/' && path[0] != '@') || len < 2)
		return -EAFNOSUPPORT;
	if (len >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	memcpy(ret->sun_path, path, len);
	if (path[0] == '@')
		ret->sun_path[0] = 0;
	*ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return 0;
}

int notify_send(const char *state)
{
	const char *path = getenv(VARIABLE);
	struct sockaddr_un address;
	socklen_t size;
	int fd, err;

	if (!path || !*path)
		return 1;
	err = address_of(path, &address, &size);
	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, size) < 0)
		err = -errno;
	close(fd);
	return err;
}

int notify_reloading(void)
{
	char text[64];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(clock_monotonic() / 1000));
	return notify_send(text);
}

void notify_forget(void)
{
	unsetenv(VARIABLE);
}
