// SPDX-License-Identifier: Apache-2.0
// Pulls of the profile of the next seconds out of a recording that goes on for others. The recording's loop cuts it where
// a pull begins or ends, adds up what lies between for each of them and for the shipped windows, and makes the profiles;
// the threads that pull only wait.
#ifndef BLKPROF_AGENT_LIVE_H
#define BLKPROF_AGENT_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/recorder.h"
#include "agent/view.h"
#include "common/buf.h"
#include "common/error.h"

#define LIVE_PULLS 16	   // at once
#define LIVE_SECONDS 30	   // unless told otherwise; go tool pprof gives up after 60
#define LIVE_SECONDS_MAX 300

struct live;

struct live_pull {
	struct window_view view; // its texts belong to the caller
	unsigned seconds;
	// Why it is not wanted any more, NULL while it is; asked a few times a second. May be NULL.
	const char *(*why_end)(void *context);
	void *context;
};

struct live_counters {
	uint64_t pulls, failed, refused; // ended with a profile, without one, not begun
	uint64_t running;
};

// Beyond `rows` rows in all that pulls hold, they end. NULL without memory.
struct live *live_new(size_t rows);
void live_free(struct live *l); // after the last live_pull; before the recorder is freed; NULL too

// ---- any thread

// Waits for the profile. -EINVAL (the view), -EBUSY (too many pulls), -E2BIG, -ECANCELED (the agent stops, the recording
// is made anew, the client is gone), -ETIMEDOUT, -ENOMEM, with a message.
int live_pull(struct live *l, const struct live_pull *q, struct buf *ret_gz, struct window_info *ret_info, struct error *e);
enum label_set live_labels(struct live *l); // that the recording has
// Every pull, now and later, ends with -ECANCELED.
void live_stop(struct live *l);
void live_get_counters(struct live *l, struct live_counters *ret);

// ---- the thread of the recording

// What the recording tells apart, for live_pull.
void live_recorded(struct live *l, enum label_set labels);
// When a pull wants the next cut, ns of CLOCK_MONOTONIC; 0 = none does.
uint64_t live_due(struct live *l);
// After a cut; takes over the window. -ENOMEM: what had come since the last shipped window is lost, pulls have ended.
int live_add(struct live *l, struct window *w);
// Everything since the last call, to be shipped; the caller frees it. -ENODATA when there was no cut since.
int live_ship(struct live *l, struct window **ret);
// Makes the profile of a pull that has ended; false when there was none to make.
bool live_work(struct live *l);
// The recorder is about to be freed: pulls end with this error, nothing of it is held any more.
void live_end(struct live *l, int err, const char *text);

#endif
