// SPDX-License-Identifier: Apache-2.0
// The kernel side as an object: open, configure, load, attach, activate. One per recording; several may be attached at
// once without disturbing each other.
#ifndef BLKPROF_AGENT_PROBES_H
#define BLKPROF_AGENT_PROBES_H

#include <bpf/libbpf.h>

#include "agent/kernel_facts.h"
#include "agent/recorder.h"
#include "bpf/record_rec.h"
#include "bpf/timeline_rec.h"

struct probes;

struct probes_options {
	struct record_config config;
	uint32_t rate; // stacks per second and CPU, about; 0 = every bio
	uint32_t cpu_hz;
	uint32_t ring; // bytes, a power of two of whole pages; 0 = 8 MiB
	const struct filter *filter; // maps are filled from it; NULL = none
	pid_t command;		     // followed with its descendants when config.follow
	bool timeline;		     // with switches, wake-ups and each bio's submission: the tracepoint backend only
	bool timeline_stacks;	     // where threads sleep
	bool queue_first, issue_queue_first, switch_state; // as in struct kernel_facts
};

// libbpf says nothing by itself from now on, unless BLKPROF_DEBUG is set.
void probes_quiet(void);
// Loads and attaches one backend; nothing is counted before probes_activate.
int probes_new(enum backend backend, const struct probes_options *options, struct probes **ret, struct error *e);
void probes_free(struct probes *p);

// Which form of the backend is used and why not a better one, or "".
const char *probes_note(const struct probes *p);
struct record_state *probes_state(struct probes *p); // mapped memory shared with the programs
struct bpf_map *probes_map(struct probes *p, const char *name);
void probes_activate(struct probes *p);
void probes_deactivate(struct probes *p); // programs that still run have ended when it returns
// Waits until every program that runs now has ended (an RCU grace period).
void probes_grace(void);
// What the kernel says of the bio of an entry in the map of bios in flight.
enum bio_state probes_check(struct probes *p, uint64_t address, const struct in_flight *e);
// What found no room in the ring, by enum timeline_loss. 0 or a negative errno.
int probes_timeline_losses(struct probes *p, uint64_t ret[TIMELINE_LOSSES]);
uint64_t probes_recursion_misses(struct probes *p); // program runs that the kernel skipped
// Run time of all programs and runs of each hook, where kernel.bpf_stats_enabled counts them.
void probes_run_time(struct probes *p, uint64_t *ret_ns, uint64_t *ret_runs);
uint32_t probes_tick_hz(const struct probes *p);
uint32_t probes_target(const struct probes *p); // samples per tick and stratum that the rate asks for; 0 = every bio

#endif
