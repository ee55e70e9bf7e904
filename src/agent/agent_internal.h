// SPDX-License-Identifier: Apache-2.0
// What the files of the daemon's object share: agent.c (life), agent_window.c (windows to batches), agent_reload.c.
#ifndef BLKPROF_AGENT_AGENT_INTERNAL_H
#define BLKPROF_AGENT_AGENT_INTERNAL_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>

#include "agent/agent.h"
#include "agent/agent_config.h"
#include "agent/agent_requests.h"
#include "agent/io_metrics.h"
#include "agent/jvm_wake.h"
#include "agent/live.h"
#include "agent/ship.h"
#include "agent/spool.h"
#include "common/metrics.h"
#include "http/server.h"

#define ENDPOINTS_MAX 16

struct agent {
	char *path;
	agent_log_fn log;
	void *log_context;
	struct agent_config config;
	struct filter filter;	     // as resolved for the recorder
	struct recorder *recorder;
	struct spool *spool;
	struct ship *ship;	     // NULL without endpoints
	uint8_t ship_key[KEY_SIZE];  // its public one
	bool left_behind;	     // a ship that could not be ended: its thread may use the spool and the log
	struct jvm_wake *jvm_wake;   // of the recorder and of the requests
	struct agent_requests *requests; // NULL without targets; changed under `measuring`
	struct live *live;	     // shares the recording with pulls over HTTP
	struct http_server *http;    // NULL without `listen`
	uint64_t stepped;	     // when the loop last turned, ns; read by other threads
	uint64_t due;		     // end of this window, ns since the epoch
	uint64_t ended;		     // end of the last one
	struct agent_metrics metrics; // its bpf_* of probes that were replaced
	struct io_metrics *io;
	pthread_mutex_t measuring;
	struct agent_metrics published; // as of the last window's end, under `measuring`, as a change of `ship` is
};

void agent_say(struct agent *a, enum agent_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

// agent_measure.c
void agent_publish(struct agent *a);
void agent_metrics_http(const struct http_server *s, struct buf *ret);

// agent_window.c
uint64_t agent_next_end(uint64_t now, uint64_t window); // the next multiple of the window's length
int agent_slice(struct agent *a, struct error *e); // cuts the recording for pulls
int agent_cut(struct agent *a, struct error *e);   // ends a window: its batch goes to the spool
int agent_last(struct agent *a, struct recorder *r, struct error *e); // what a stopped recorder has left

// agent_http.c: starts what c wants.
int agent_http_open(struct agent *a, const struct agent_config *c, struct error *e);
void agent_http_close(struct agent *a); // pulls have been told (live_stop), or end with an error
// Ends the server and starts that of c; when that fails the one of a->config is started again.
int agent_http_reload(struct agent *a, const struct agent_config *c, struct error *e);

// agent_reload.c
int agent_recorder(struct agent *a, const struct agent_config *c, const struct filter *f, struct recorder **ret, struct error *e);
// Ends the ship that there is and starts the one of c. With check it only says whether it could be started.
int agent_ship(struct agent *a, const struct agent_config *c, bool check, struct error *e);
// Follows the requests that c asks for, or no longer. What the kernel refuses is said, and windows go on.
void agent_follow_requests(struct agent *a, const struct agent_config *c);
// Cgroups and devices are other ones when what they name was made anew.
void agent_refresh_filter(struct agent *a);

#endif
