// SPDX-License-Identifier: Apache-2.0
// The spool: batches on their way to a collector, in a bounded directory of one file each, so that a collector that is
// down, a broken network and a killed agent lose nothing. A thread of its own writes and syncs (file, then folder) and
// removes, since the directory may lie on the very disk in trouble: spool_add and spool_acknowledge never wait for it.
// A batch can be sent once it is durable, and is removed when it is acknowledged. Beyond the bounds (bytes on disk, bytes
// that wait in memory) the oldest go first, and a record of their own (BATCH_GAP) says which. Every function may be
// called from any thread.
#ifndef BLKPROF_AGENT_SPOOL_H
#define BLKPROF_AGENT_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "wire/batch.h"

struct spool;

struct spool_options {
	const char *directory; // made when it is not there (0700), not its parents
	uint64_t max_size;     // bytes on disk; 0 = 1 GiB
	uint64_t max_waiting;  // bytes in memory that are not on disk yet; 0 = 16 MiB
	const char *node;      // of the batches and gaps of this start
};

// Batches of earlier starts are found again by the thread, up to what is damaged. -EBUSY when another process uses the
// directory; -EACCES, -ENOENT, -ENOTDIR, -EROFS with what to do.
int spool_open(const struct spool_options *options, struct spool **ret, struct error *e);
// Waits at most timeout_ms for what is in memory to become durable, then ends the thread. What was not durable is lost:
// spool_stats counts it before. A disk that hangs leaves the thread behind (detached) with all its memory.
void spool_close(struct spool *s, unsigned timeout_ms);

// Gives the batch its node, instance and sequence, encodes it and queues it. -EINVAL for a batch that cannot be encoded.
int spool_add(struct spool *s, const struct batch *b);
// Waits until all that was added before is durable: 0, or -ETIMEDOUT.
int spool_flush(struct spool *s, unsigned timeout_ms);

// ---- for the sender

struct spool_item {
	uint8_t instance[16];
	uint64_t sequence;
	uint8_t *data; // encoded batch or gap
	size_t size;
};

// The oldest durable batch that was not handed out since the last rewind. -EAGAIN when there is none. The first file
// that cannot be read is dropped and becomes a gap.
int spool_next(struct spool *s, struct spool_item *ret);
void spool_item_free(struct spool_item *item);
// From the oldest again, after a connection is lost.
void spool_rewind(struct spool *s);
// The collector has it: the file is removed. One that is not there (any more) changes nothing.
void spool_acknowledge(struct spool *s, const uint8_t instance[16], uint64_t sequence);
// Readable (poll, zmq_poll) when spool_next may have something; spool_next clears it.
int spool_fd(const struct spool *s);

// ---- what there is and what was lost

struct spool_stats {
	uint64_t files, bytes;	       // on disk
	uint64_t waiting, waiting_bytes; // in memory, not durable yet
	uint64_t unsent;	       // not handed out since the last rewind
	uint64_t added, durable, acknowledged; // batches, since the start
	uint64_t dropped_full;	       // batches dropped for max_size or because the disk was full
	uint64_t dropped_waiting;      // for max_waiting: the disk did not keep up
	uint64_t dropped_damaged;      // files that could not be read back
	uint64_t recovered;	       // batches of earlier starts
	uint64_t write_errors;	       // attempts that failed and were (or will be) repeated
	int write_error;	       // of the last attempt; 0 = it succeeded
	uint64_t oldest;	       // start of the oldest window, ns since the epoch, 0 = none
};

void spool_stats(struct spool *s, struct spool_stats *ret);
const uint8_t *spool_instance(const struct spool *s); // 16 bytes, random for each start

#endif
