// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "http/internal.h"

static bool is_loopback(const struct sockaddr_storage *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;

	return a->ss_family == AF_INET ? ntohl(v4->sin_addr.s_addr) >> 24 == 127 : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

int http_parse_listen(const char *listen, struct sockaddr_storage *ret, bool *ret_loopback, struct error *e)
{
	const struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
	const char *colon = strrchr(listen, ':');
	struct addrinfo *found;
	char host[128];
	uint64_t port;
	size_t len;
	int err;

	if (!colon || (size_t)(colon - listen) >= sizeof(host))
		return error_set(e, -EINVAL, "listen = %.100s: write ADDRESS:PORT, as 127.0.0.1:6061 or [::1]:6061", listen);
	err = text_number(colon + 1, 0, 65535, "the port", &port, e);
	if (err)
		return error_prefix(e, err, "listen = %.100s", listen);
	len = (size_t)(colon - listen);
	memcpy(host, listen, len);
	host[len] = 0;
	if (host[0] == '[' && len > 2 && host[len - 1] == ']') {
		memmove(host, host + 1, len - 2);
		host[len - 2] = 0;
	}
	if (!strcmp(host, "localhost"))
		strcpy(host, "127.0.0.1");
	if (getaddrinfo(*host ? host : NULL, colon + 1, &hints, &found))
		return error_set(e, -EINVAL, "listen = %.100s: %.100s is no address; names are not looked up", listen, host);
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	*ret_loopback = is_loopback(ret);
	return 0;
}
