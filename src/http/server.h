// SPDX-License-Identifier: Apache-2.0
// The HTTP side of the daemons: routes, tokens, TLS, and limits on everything that comes from outside. Only GET and HEAD.
//
// Each request is answered by a function that runs on one of a few threads of its own, so that a slow one delays nobody
// else's quick one; beyond `running` and `waiting` of them a client is told to come back (503). What a client reads
// slowly waits in memory of its response only, and for a limited time.
#ifndef BLKPROF_HTTP_SERVER_H
#define BLKPROF_HTTP_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

struct http_options {
	const char *listen;	    // "127.0.0.1:6061", "[::1]:6061", ":6061" (every one of IPv4), "[::]:6061" (every one)
	const char *token_file;	    // NULL = none; needed where listen is no loopback address and there is no client CA
	const char *tls_cert, *tls_key; // PEM files, both or none
	const char *tls_client_ca;  // PEM file: a client's certificate must be of it; it then needs no token
	unsigned connections;	    // 0 = 256
	unsigned running, waiting;  // requests at once, 0 = 4 and 32
	unsigned timeout_s;	    // of an idle connection, and until it has asked; 0 = 30
	uint64_t response;	    // bytes of one answer, and of those that clients are still reading, 0 = 256 MiB
};

#define HTTP_ARGUMENTS 32
#define HTTP_TEXT 1024 // bytes of one argument

struct http_argument {
	char *name, *value; // decoded; value "" where there is none
};

struct http_server;

struct http_request {
	const char *path;
	unsigned n;
	struct http_argument argument[HTTP_ARGUMENTS];
	const struct http_server *server; // for http_stopping
	int socket;			  // for http_client_gone
};

struct http_response {
	unsigned status;  // 200 unless set
	const char *type; // static text; "text/plain; charset=utf-8" unless set
	const char *file_name; // for Content-Disposition, static; NULL = none
	bool gzipped;	       // the body is, as a transfer's encoding
	struct buf body;       // the server frees it
	char note[200];	       // header X-Blkprof-Note: one line, "" = none
};

// Fills the response; a negative errno with e makes an error of it (http_status_of).
typedef int http_handler(void *context, const struct http_request *q, struct http_response *r, struct error *e);

struct http_route {
	const char *path; // whole
	http_handler *fn;
	bool open;  // needs no token (/healthz)
	bool quick; // may run in the loop of the server: takes no time and waits for nothing
};

struct http_counters {
	uint64_t requests, refused_token, refused_busy, failed, connections, bytes;
	uint64_t cut; // connections that took too long to ask or to read
};

// `routes` ends with a route without a path and outlives the server. -EINVAL, -EACCES, -EADDRINUSE … with what to do.
int http_server_new(const struct http_options *options, const struct http_route *routes, void *context, struct http_server **ret,
		    struct error *e);
// Waits for what is running: handlers that wait for something look at http_stopping meanwhile.
void http_server_free(struct http_server *s);
bool http_stopping(const struct http_server *s);
uint16_t http_port(const struct http_server *s); // that it got, where listen said 0
const struct http_counters *http_get_counters(const struct http_server *s);

// Whether the client has closed the connection: a handler that waits for long looks at it meanwhile.
bool http_client_gone(const struct http_request *q);

// Of a request: NULL when it is not there.
const char *http_argument_of(const struct http_request *q, const char *name);
// The i-th argument of that name, for those that may be repeated.
const char *http_argument_nth(const struct http_request *q, const char *name, unsigned i);
// -EINVAL with the name of the first argument that is none of `names` (ends with NULL): a misspelled filter would answer
// another question.
int http_check_arguments(const struct http_request *q, const char *const *names, struct error *e);
// 400, 401, 404, 413, 503 … of a negative errno.
unsigned http_status_of(int err);

#endif
