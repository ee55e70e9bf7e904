// SPDX-License-Identifier: Apache-2.0
// One record: a request and where its time went, a thread's sums outside of requests, or sums of the requests of one
// handler. record_json is what travels in a BATCH_REQUESTS and what is indexed.
#ifndef BLKPROF_REQUEST_RECORD_H
#define BLKPROF_REQUEST_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "request/breakdown.h"

enum record_kind {
	REQUEST_ONE = 1,	 // kind_s request
	REQUEST_THREAD = 2,  // kind_s thread: a thread's sums outside of requests
	REQUEST_HANDLER = 3, // kind_s handler: sums of requests that were too many to be told one by one
};

// How sure it is that all of it belongs to this request.
enum attribution {
	ATTRIBUTION_EXACT,	    // read, served and answered by one thread
	ATTRIBUTION_HANDLER_THREAD, // answered by another thread than read it: parts of both, the hand-over is not seen
	ATTRIBUTION_THREAD_ONLY,    // no request: the thread's own sums
	ATTRIBUTION_SHARED_THREAD,  // one thread had several requests open at once: its times cannot be told apart
	ATTRIBUTIONS,
};

// What ended it.
enum request_end {
	END_NEXT_READ, // the connection was read again after the answer
	END_NEXT_RESPONSE, // the next answer of a pipeline began
	END_CLOSED,    // the connection was closed by the server
	END_EOF,       // by the client
	END_IDLE,      // nothing for a long time: counted as over
	END_STOPPED,   // the recording or the process ended
	END_WINDOW,    // of a sum: its time was over
	REQUEST_ENDS,
};

#define RECORD_PATH 512
#define RECORD_QUERY 1024
#define RECORD_NAME 128
#define RECORD_PARAMS 32

// Texts are sanitized UTF-8; an empty one is left out.
struct request_record {
	enum record_kind kind;
	uint32_t pid, tid;
	uint64_t start, end; // ns since the epoch
	uint64_t connection; // socket's inode number
	uint64_t number;     // of the request on its connection, from 1; makes the id unique
	int status;	     // 0 = none was seen
	enum attribution attribution;
	enum request_end ended;
	bool incomplete; // something of it was not seen; missing says what
	char method[16], proto[16];
	char path[RECORD_PATH], query[RECORD_QUERY]; // query: with the values redacted
	char core[RECORD_NAME], handler[RECORD_NAME];
	char trace_id[RECORD_NAME], parent_span[24];
	char comm[16], thread[RECORD_NAME]; // thread: its Java name
	uint32_t device_number;		    // of the longest block I/O: major << 20 | minor, 0 = none
	char device[32];		    // its name
	char stack_quality[24]; // "frame_pointers"; of JVMs only
	char missing[64];		    // of the request itself: "request_line", "status", ... by commas
	struct breakdown times;
};

void record_free(struct request_record *r); // what it owns, not the struct
// host:pid:connection:start:number (of a thread its number for pid; of a handler's sums an h before number), unique over agents and starts and the same whenever it is sent again.
void record_id(const struct request_record *r, const char *host, char *ret, unsigned cap);
// Appends one JSON object: field name to string, number, boolean or array of strings.
void record_json(const struct request_record *r, const struct breakdown_table *m, const char *host, struct buf *ret);

// The fields of a record that are no metric, for schemas and tests; NULL behind the last one.
const char *record_field(unsigned i);

#endif
