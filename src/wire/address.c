// SPDX-License-Identifier: Apache-2.0
#include "wire/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "common/text.h"

#define ADDRESS_MAX 255
#define TCP "tcp://"
#define IPC "ipc://"

static bool starts_with(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

// The part between scheme and port, without the brackets of IPv6.
static bool host_of(const char *address, char ret[ADDRESS_MAX + 1])
{
	const char *host = address + strlen(TCP), *colon = strrchr(host, ':');
	size_t len = colon ? (size_t)(colon - host) : 0;

	if (!len || len > ADDRESS_MAX)
		return false;
	if (host[0] == '[' && len > 2 && host[len - 1] == ']') {
		host++;
		len -= 2;
	}
	memcpy(ret, host, len);
	ret[len] = 0;
	return true;
}

int address_check(const char *address, struct error *e)
{
	char host[ADDRESS_MAX + 1];
	uint64_t port;

	if (strlen(address) > ADDRESS_MAX)
		return error_set(e, -EINVAL, "the address '%.40s...' is too long", address);
	if (starts_with(address, IPC) && address[strlen(IPC)])
		return 0;
	if (!starts_with(address, TCP) || !host_of(address, host))
		return error_set(e, -EINVAL, "'%.100s' is no address: tcp://HOST:PORT or ipc://PATH", address);
	// ';' would name a source address to libzmq.
	if (strpbrk(host, " ;/\t"))
		return error_set(e, -EINVAL, "'%.100s' is no name of a host", host);
	if (text_number(strrchr(address, ':') + 1, 1, 65535, "the port", &port, e))
		return error_prefix(e, -EINVAL, "%.100s", address);
	return 0;
}

bool address_is_local(const char *address)
{
	char host[ADDRESS_MAX + 1];
	struct in6_addr v6;
	struct in_addr v4;

	if (starts_with(address, IPC))
		return true;
	if (!starts_with(address, TCP) || !host_of(address, host))
		return false;
	if (!strcmp(host, "localhost"))
		return true;
	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}
