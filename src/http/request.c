// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "http/internal.h"

bool http_client_gone(const struct http_request *q)
{
	struct pollfd p = { .fd = q->socket, .events = POLLRDHUP };

	return q->socket >= 0 && poll(&p, 1, 0) > 0;
}

const char *http_argument_nth(const struct http_request *q, const char *name, unsigned i)
{
	for (unsigned k = 0; k < q->n; k++)
		if (!strcmp(q->argument[k].name, name) && !i--)
			return q->argument[k].value;
	return NULL;
}

const char *http_argument_of(const struct http_request *q, const char *name)
{
	return http_argument_nth(q, name, 0);
}

int http_check_arguments(const struct http_request *q, const char *const *names, struct error *e)
{
	for (unsigned k = 0; k < q->n; k++) {
		char list[300] = "";
		bool known = false;

		for (unsigned i = 0; names[i]; i++) {
			known |= !strcmp(names[i], q->argument[k].name);
			if (strlen(list) + strlen(names[i]) + 3 < sizeof(list)) {
				strcat(list, *list ? ", " : "");
				strcat(list, names[i]);
			}
		}
		if (!known)
			return error_set(e, -EINVAL, "there is no argument '%.60s'; there are %s", q->argument[k].name, *list ? list : "none");
	}
	return 0;
}

unsigned http_status_of(int err)
{
	switch (-err) {
	case 0:
		return MHD_HTTP_OK;
	case EINVAL:
	case ERANGE:
		return MHD_HTTP_BAD_REQUEST;
	case EACCES:
	case EPERM:
		return MHD_HTTP_FORBIDDEN;
	case ENOENT:
	case ENODATA:
		return MHD_HTTP_NOT_FOUND;
	case E2BIG:
	case EFBIG:
		return MHD_HTTP_CONTENT_TOO_LARGE;
	case EAGAIN:
	case EBUSY:
	case ENOMEM:
	case ECANCELED:
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	case ETIMEDOUT:
		return MHD_HTTP_GATEWAY_TIMEOUT;
	}
	return MHD_HTTP_INTERNAL_SERVER_ERROR;
}
