// SPDX-License-Identifier: Apache-2.0
// What the files of the flow share: flow.c (connections and events), flow_request.c (one request), flow_read.c (what is
// read), flow_answer.c (what is written).
#ifndef BLKPROF_REQUEST_FLOW_INTERNAL_H
#define BLKPROF_REQUEST_FLOW_INTERNAL_H

#include <sys/queue.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "common/buf.h"
#include "request/body.h"
#include "request/flow.h"

#define PIPELINE_MAX 64
#define UNCOUNTED UINT64_MAX

struct connection;

// What its process had stood still when an event came.
struct pauses {
	uint32_t jvm; // enum req_jvm
	uint64_t gc, safepoint;
};

// A request that has begun.
struct open_request {
	struct open_request *next; // behind it in the pipeline
	struct connection *connection;
	struct request_record *record; // what is known so far
	uint64_t behind; // requests right behind it that were not seen; UNCOUNTED = nobody knows how many
	uint64_t start, base_time, first_write, end; // ns, CLOCK_MONOTONIC
	uint64_t req_bytes, resp_bytes, calls_ns, lost;
	uint32_t tid, tgid;
	bool answered, bound, shared, handed_over, waits;
	bool end_unseen;  // what of the last write is its own
	bool coalesced;	  // its answer and the next one came in one write
	bool upgrade_h2c; // it asks for HTTP/2
	bool expects;	  // its body comes only once that was asked for
	struct req_sums base, last;
	struct pauses paused_base, paused;
	uint64_t wait_blocked[WAITS], client_blocked[WAITS];
	uint64_t disk_max;
	uint32_t disk_dev;
	char answer[12]; // its beginning, when it comes in pieces
	unsigned answer_size;
	char comm[REQ_COMM];
};

struct connection {
	UT_hash_handle hh;
	TAILQ_ENTRY(connection) by_age;
	uint64_t key, last;
	uint64_t requests;
	uint32_t sequence, tgid;
	bool blind;	// where the next request begins is not known
	bool ignored;
	bool doubtful; // whose answers come next is not known any more: nobody is given one
	bool asked;    // read from since it was written to
	bool unseen_answer; // what is being written answers a request that was not seen
	uint64_t unseen;    // requests that were not seen, before the first one
	struct body body;   // of the request that is being read
	struct body answer; // of what is being written
	struct buf head; // of a request, not whole yet
	uint64_t head_start;
	struct open_request *first, *end;
	unsigned n;
};

// Who works on what: one request a thread, or its sums are of several.
struct owner {
	UT_hash_handle hh;
	uint32_t tid;
	struct open_request *request;
};

struct flow {
	struct flow_options options;
	struct target_rules no_rules;
	struct connection *connections;
	TAILQ_HEAD(, connection) by_age; // oldest first
	struct owner *owners;
	unsigned n_connections, n_requests;
	size_t heads;
	int64_t clock;
	uint64_t counts[FLOW_COUNTS];
};

// flow_request.c
struct open_request *request_open(struct flow *f, struct connection *c, const struct req_event *e, const struct http_head *head);
void request_bind(struct flow *f, struct open_request *r, const struct req_event *e); // by a read that belongs to it
void request_wait(struct open_request *r, const struct req_event *e); // -EAGAIN: its thread will wait for the client
void request_waited(struct open_request *r, const struct req_event *e);
// Each event has the longest block I/O since the thread's last one, whatever it tells of.
void request_disk(struct open_request *r, const struct req_event *e);
void request_written(struct flow *f, struct open_request *r, const struct req_event *e, uint64_t bytes);
// Another one before it was being answered up to here.
void request_waits_on(struct flow *f, struct open_request *r, const struct req_event *e);
// There are n more that are not followed.
void connection_unseen(struct flow *f, struct connection *c, uint64_t n);
void request_missing(struct request_record *r, const char *what);
// Takes the first of its connection out, tells of it and frees it; the next one begins.
void request_finish(struct flow *f, struct open_request *r, enum request_end why);

// flow_read.c
void connection_data(struct flow *f, struct connection *c, const struct req_event *e, const char *payload);
void connection_head_free(struct flow *f, struct connection *c);
// An answer to a request whose head is not whole (too long, too slow).
void connection_answered_early(struct flow *f, struct connection *c, const struct req_event *e);

// flow_answer.c
void connection_written(struct flow *f, struct connection *c, const struct req_event *e, const char *payload);
// From here on it is not known whose answer is whose.
void connection_doubt(struct flow *f, struct connection *c);

#endif
