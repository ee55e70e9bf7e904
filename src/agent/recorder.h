// SPDX-License-Identifier: Apache-2.0
// A recording of this node's block I/O: new, (filters and options), start, poll until the time is up, stop, then the
// profile of everything from start to stop. What DESIGN calls windows are taken with recorder_window, as often as wanted
// while it runs. Not thread-safe; needs root (CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE).
#ifndef BLKPROF_AGENT_RECORDER_H
#define BLKPROF_AGENT_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/devices.h"
#include "agent/filter.h"
#include "bpf/record_rec.h"
#include "bpf/timeline_rec.h"
#include "common/buf.h"
#include "common/error.h"

enum backend {
	BACKEND_AUTO,
	BACKEND_FENTRY,
	BACKEND_KPROBE,
	BACKEND_TRACEPOINT,
	BACKENDS
};

enum label_set {
	LABELS_ALL,
	LABELS_FEW, // device, op, service, latency
	LABELS_NONE,
	LABELS_FEW_COMM // few and comm
};

struct jvm_wake;

struct recorder_options {
	enum backend backend;
	uint32_t rate;	 // stacks per second and CPU, about; 0 = every bio
	uint32_t cpu_hz; // 0 = no CPU samples
	bool kernel_stacks;
	bool frame_pointers; // walk user stacks by frame pointer only, without unwind tables
	enum label_set labels;
	const char *root; // labels shown as frames under the process, comma-separated, or NULL
	const char *node; // name in the profile; NULL = host name
	struct filter filter;
	size_t memory;	    // bytes of what is kept about processes, symbols, stacks, about; 0 = a few hundred MiB
	size_t ring;	    // bytes between the kernel and us, a power of two of whole pages; 0 = 8 MiB
	bool java_attach;   // ask JVMs for their perf map
	struct jvm_wake *jvm_wake; // not owned; NULL: those without an attach socket are let be
	bool timeline;	    // records switches, wake-ups and each bio's submission too, for `watch`; tracepoint backend only
	bool timeline_stacks; // where threads sleep
	// Sees every record of the ring first (record_rec.h, timeline_rec.h), and of a timeline the ends that no hook saw, from
	// recorder_poll and recorder_stop.
	void (*watch)(void *context, const void *record, size_t size);
	void *watch_context;
	bool follow;	    // only the process `command` and its descendants
	pid_t command;
};

struct recorder;

// Opens, configures and loads, tries the backends by really attaching (nothing is counted yet). -EPERM, -ENOSYS,
// -EOPNOTSUPP with a message that says what this kernel refuses and what to do.
int recorder_new(const struct recorder_options *options, struct recorder **ret, struct error *e);
void recorder_free(struct recorder *r); // detaches everything; NULL and half-built objects too
const char *recorder_backend(const struct recorder *r); // "tracepoint"
// Why a better backend is not used: one line, or "".
const char *recorder_backend_reason(const struct recorder *r);

int recorder_start(struct recorder *r, struct error *e);
// Takes in what has arrived; waits at most timeout_ms. Call it at least every 100 ms. -EINTR after a signal.
int recorder_poll(struct recorder *r, int timeout_ms);
// Ends counting, drains, charges what is in flight to a leaf [in flight].
int recorder_stop(struct recorder *r, struct error *e);

// Exact totals since the start (or of the last window), for progress lines: sums over devices.
struct recorder_totals {
	uint64_t ops[OP_CLASSES], bytes[OP_CLASSES];
	uint64_t own_ops;	   // blkprof's own I/O, kept out
	uint64_t second_level_ops; // of devices below a stacked one, kept out
	uint64_t samples;	   // stacks taken
	uint64_t filtered_ops;	   // bios that no filter matched; counted only while there is a filter
	double time_ns;		   // estimated I/O time, after stop
	uint64_t duration_ns;
};
void recorder_get_totals(struct recorder *r, struct recorder_totals *ret);
// For `watch`: the disk that a slot stands for, its number in *ret_dev; and a stack's frames as text, outermost first, one
// a line, in an empty buffer. -ENOENT when it is not known.
const char *recorder_slot_disk(struct recorder *r, uint32_t slot, uint32_t *ret_dev);
int recorder_stack_text(struct recorder *r, const struct in_flight *e, struct buf *to);
// Makes a process known, so that its stacks are walked by tables from then on.
void recorder_see_process(struct recorder *r, pid_t pid);
// Of timeline recordings, by enum timeline_loss. 0 or a negative errno.
int recorder_timeline_losses(struct recorder *r, uint64_t ret[TIMELINE_LOSSES]);
uint64_t recorder_loss(struct recorder *r, enum loss_cause cause);
const char *loss_name(enum loss_cause cause);	    // "ring_full"
const char *loss_explanation(enum loss_cause cause); // one line for people

// The profile of what was recorded since the start or the last window, gzipped, and a report for a terminal: totals,
// devices, the `top` heaviest stacks, losses; or why the profile is empty. After stop.
int recorder_profile(struct recorder *r, struct buf *ret_gz, struct error *e);
int recorder_report(struct recorder *r, unsigned top, struct buf *ret_text);
// Ends a window and begins the next without a gap: the gzipped profile of the window that ended. While running.
int recorder_window(struct recorder *r, struct buf *ret_gz, struct error *e);

// ---- windows as things: cut every second, added up to longer ones, made profiles when they are wanted

struct window_info {
	uint64_t start, end;		// ns since the epoch
	uint64_t start_mono, end_mono;	// ns, CLOCK_MONOTONIC
	uint64_t ops[OP_CLASSES], bytes[OP_CLASSES]; // exact
	double time_ns;			// I/O time, estimated
	double cpu_ns;			// CPU samples
	// What happened in this window, whoever's it was.
	uint64_t own_ops, second_level_ops, filtered_ops, samples;
	uint64_t losses[LOSS_CAUSES];
};

struct window;

// Ends a window and begins the next without a gap. Owned by the caller, to be freed before the recorder. While running.
int recorder_cut(struct recorder *r, struct window **ret, struct error *e);
// What was recorded between the last cut and recorder_stop; owned by the recorder. After stop.
struct window *recorder_last(struct recorder *r);
void window_free(struct window *w); // NULL too
const struct window_info *window_get_info(const struct window *w);
// Adds a window that begins where `into` ends; windows between that are left out are a gap that nobody sees.
int window_merge(struct window *into, const struct window *w);
int window_copy(const struct window *w, struct window **ret); // 0 or -ENOMEM; to be freed before the recorder
// I/O of one kind; there may be several of the same names.
struct window_row {
	const char *service, *device, *op; // valid until the recorder is polled
	double ops, bytes, time_ns;
};
unsigned window_rows(const struct window *w);
bool window_get_row(const struct window *w, unsigned i, struct window_row *ret); // false for CPU samples
// One gzipped profile of the whole node.
int window_profile(struct window *w, struct buf *ret_gz, struct error *e);
// One gzipped profile for each service that did something, in order of their names; mapping[0] is `[service NAME]`. What
// the callback returns, when it is not 0, ends it. The comments on losses and on what was kept out are the node's, the
// same in each profile, and name node and window.
typedef int (*window_service_fn)(const char *service, const struct buf *gz, void *context);
int window_services(struct window *w, window_service_fn fn, void *context, struct error *e);
// recorder_cut, window_services, window_free. ret_info may be NULL.
int recorder_window_services(struct recorder *r, window_service_fn fn, void *context, struct window_info *ret_info,
			     struct error *e);

// What doctor asks: tries one backend by loading and attaching it, and says in the kernel's own words why not.
int recorder_try_backend(enum backend backend, struct error *e);
const char *backend_name(enum backend b);
int backend_parse(const char *text, enum backend *ret); // -EINVAL

#endif
