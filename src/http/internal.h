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

// peers.c: how long each connection may take to ask, and to read what it asked for. One that takes longer is ended.
#define HTTP_READS_LEAST 65536 // bytes a second

struct http_peers;
struct http_peer;
struct http_peers *http_peers_new(unsigned timeout_s, uint64_t *cut); // *cut counts those that were ended
void http_peers_free(struct http_peers *p); // when there are no connections any more; NULL too
struct http_peer *http_peers_add(struct http_peers *p, int fd); // NULL without memory: it has no limit
void http_peers_remove(struct http_peers *p, struct http_peer *one); // before its descriptor is closed; NULL too, as below
void http_peer_asks(struct http_peers *p, struct http_peer *one);    // from now on, as after http_peers_add
void http_peer_waits(struct http_peers *p, struct http_peer *one);   // for us
void http_peer_reads(struct http_peers *p, struct http_peer *one, uint64_t bytes);

#endif
