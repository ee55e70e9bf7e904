// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_HTTP_INTERNAL_H
#define BLKPROF_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <sys/socket.h>

#include "http/server.h"

#define HTTP_TOKEN_MAX 256

struct http_auth {
	char token[HTTP_TOKEN_MAX]; // "" = none
	bool certificates;	    // a client's certificate does
};

// listen.c: "HOST:PORT" to an address; whether it is a loopback one.
int http_parse_listen(const char *listen, struct sockaddr_storage *ret, bool *ret_loopback, struct error *e);

// auth.c
int http_auth_read(const struct http_options *o, bool loopback, struct http_auth *ret, struct error *e);
// Bearer, or the password of Basic. Takes the same time whatever is wrong.
bool http_auth_ok(const struct http_auth *a, struct MHD_Connection *c);
// Is the client's certificate of the CA that was configured?
bool http_certificate_ok(struct MHD_Connection *c);

// workers.c
struct http_job {
	struct http_job *next;
	const struct http_route *route;
	struct http_request request;
	struct http_response response;
	struct MHD_Connection *connection;
	uint64_t sending; // bytes of the answer that the client reads
	enum { JOB_NEW, JOB_QUEUED, JOB_DONE } state;
};

struct http_workers;
struct http_workers *http_workers_new(unsigned threads, unsigned waiting, void (*run)(void *context, struct http_job *), void *context);
// False when as many are waiting as may, and from http_workers_stop on.
bool http_workers_add(struct http_workers *w, struct http_job *job);
void http_workers_stop(struct http_workers *w); // waits for the last job; NULL too
void http_workers_free(struct http_workers *w);

#endif
