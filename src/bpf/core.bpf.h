/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The core of every backend: sample a bio at its submission, keep it in flight, charge it at its completion. A backend
 * is a file that defines CORE_TYPED (hook arguments are BTF pointers that may be followed by plain loads) or not (every
 * load is a probe read), includes this, and calls bio_submitted and bio_ended from its hooks. */
#ifndef BLKPROF_BPF_CORE_H
#define BLKPROF_BPF_CORE_H

#include "bpf/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/record_rec.h"
#include "bpf/sampler.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct record_config config SEC(".rodata.config");
struct record_state state SEC(".data.state");

#include "bpf/compat.bpf.h"

/* bi_end_io of a chained part. Static in the kernel, its address comes from kallsyms; all ones where that is hidden. */
extern const void bio_chain_endio __ksym __weak;

static __always_inline u64 chain_endio(void)
{
	return &bio_chain_endio ? (u64)&bio_chain_endio : ~0ull;
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RECORD_SLOTS);
	__type(key, u32);
	__type(value, struct slot_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_state);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct in_flight);
} in_flight SEC(".maps");

/* Device number to slot, and the owner of each slot. An insert that must not exist yet is the only atomic claim that
 * every kernel from 5.10 on has. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RECORD_SLOTS);
	__type(key, u32);
	__type(value, struct slot_info);
} slot_owners SEC(".maps");

/* Stacks whose frames were sent. An evicted hash is only sent again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, u32);
} stacks_sent SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RECORD_RING);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u8);
} filter_pids SEC(".maps");

struct comm_key {
	char comm[RECORD_COMM];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 128);
	__type(key, struct comm_key);
	__type(value, u8);
} filter_comms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u8);
} filter_devices SEC(".maps");

/* Devices that something is stacked on. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u8);
} lower_devices SEC(".maps");

#include "bpf/stack.bpf.h"

static __always_inline struct cpu_state *this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

/* A pointer as the number that it is: the verifier forgets its type on the way through a map. */
static __always_inline u64 number(u64 *way, const void *pointer)
{
	*way = (u64)pointer;
	return *(volatile u64 *)way;
}

/* Atomic, as everything that both a hook and an interrupt in it count. */
static __always_inline void lose(struct cpu_state *cpu, enum loss_cause cause)
{
	__sync_fetch_and_add(&cpu->losses[cause], 1);
}

static __always_inline struct filter_counter *filter_of(u64 address)
{
	/* bios lie at least 8 bytes apart; the multiplication spreads slabs over the counters */
	u64 h = (address >> 3) * 0x9e3779b97f4a7c15ull;

	return &state.filter[(h >> (64 - RECORD_FILTER_BITS)) & ((1 << RECORD_FILTER_BITS) - 1)];
}

/* Both counts in one load: between two, an insert and a delete of others could make them look equal. */
static __always_inline bool may_be_in_flight(const struct filter_counter *f)
{
	u64 both = *(const volatile u64 *)f;

	return (u32)both != (u32)(both >> 32);
}

static __always_inline u8 op_of(u32 opf, u32 size)
{
	switch (opf & REQ_OP_MASK) {
	case REQ_OP_READ:
		return OP_READ;
	case REQ_OP_WRITE:
		return (opf & REQ_PREFLUSH) && !size ? OP_FLUSH : OP_WRITE;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return OP_DISCARD;
	case REQ_OP_WRITE_ZEROES:
		return OP_WRITE_ZEROES;
	}
	return is_zone_append(opf & REQ_OP_MASK) ? OP_WRITE : OP_OTHER;
}

/* Somebody else may want to know of each bio that is put into the map of bios in flight and taken out of it. */
#ifdef CORE_WATCHED
static void watch_submitted(struct bio *bio, u64 address, const struct in_flight *e);
static __always_inline void watch_ended(u64 address, const struct bio_rec *rec);
#else
#define watch_submitted(bio, address, e)
#define watch_ended(address, rec)
#endif

#include "bpf/wanted.bpf.h"
#include "bpf/submitter.bpf.h"
#include "bpf/ended.bpf.h"

/* ---- submission ---- */

/* An entry at the address of a bio that is being submitted. False: keep it and let this submission be. */
static __noinline bool stale_entry(u64 address, struct cpu_state *cpu)
{
	struct in_flight *e = bpf_map_lookup_elem(&in_flight, &address);

	if (!e)
		return true;
	if (e->punt) {
		e->punt = 0;
		return false;
	}
	/* A chain whose last two parts ended at the same moment is found here: it ended at `last`. */
	if (!e->last && cpu)
		lose(cpu, LOSS_UNSEEN);
	bio_charge(e, address, e->last, END_UNSEEN);
	return true;
}

static __always_inline void bio_sample(void *ctx, struct bio *bio, struct task_struct *task, struct cpu_state *cpu,
				       u64 address, u32 slot, u8 op, u32 size, u32 opf, u32 weight, u32 window)
{
	struct in_flight e = {};
	u32 flags = READ_TASK(task, flags);
	struct cgroup *cg;
	u64 id = bpf_get_current_pid_tgid();

	e.end_io = (u64)READ(bio, bi_end_io);
	e.private_ = (u64)READ(bio, bi_private);
	e.tgid = id >> 32;
	e.tid = (u32)id;
	e.size = size;
	e.weight = weight;
	e.window = window;
	e.slot = slot;
	e.op = op;
	e.punt = is_punted(opf);
	if (flags & PF_KTHREAD)
		e.kind = TASK_KTHREAD;
	else if (flags & (PF_IO_WORKER | PF_USER_WORKER))
		e.kind = TASK_IO_WORKER;
	if (config.async_request && e.kind == TASK_IO_WORKER && (flags & PF_IO_WORKER))
		e.submitter = submitter_stack(e.tgid, cpu);
	bpf_get_current_comm(e.comm, sizeof(e.comm));
	cg = flags & PF_KTHREAD ? bio_cgroup(bio) : task_cgroup(task, config.cgroup_subsys);
	e.cgroup = cgroup_id(cg);
	e.stack = stack_take(ctx, cpu, STACK_OF_BIO, e.kind, config.kernel_stacks || e.kind == TASK_KTHREAD);
	cpu->samples++;
	/* Counted before it is inserted: a completion on another CPU must not miss it. */
	__sync_fetch_and_add(&filter_of(address)->in, 1);
	e.submit = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&in_flight, &address, &e, BPF_ANY)) {
		__sync_fetch_and_add(&filter_of(address)->out, 1);
		lose(cpu, LOSS_INSERT_FAILED);
		return;
	}
	cpu->in++;
	watch_submitted(bio, address, &e);
}

/* True when this bio is to be sampled with *weight. */
static __always_inline bool stratum_bio(struct stratum *s, u32 *weight)
{
	u32 target = state.target;
	u64 tick;

	if (!target) {
		*weight = RECORD_WEIGHT_ONE;
		return true;
	}
	tick = bpf_jiffies64() >> (state.tick_shift & 63);
	if (tick != s->tick)
		sampler_tick(s, tick, target, bpf_get_prandom_u32());
	s->count++;
	if (--s->gap)
		return false;
	*weight = s->weight;
	sampler_taken(s, bpf_get_prandom_u32());
	return true;
}

static __always_inline void bio_submitted(void *ctx, struct bio *bio)
{
	struct task_struct *task;
	struct slot_counters *z;
	struct op_counter *exact;
	struct bio_facts facts;
	struct cpu_state *cpu;
	u32 slot, size, opf, tgid, weight, window, counter;
	u64 address;
	u8 op, stratum;

	if (!state.active)
		return;
	cpu = this_cpu();
	if (!cpu)
		return;
	/* Before any filter: whatever the bio, what the map holds at its address is not it. */
	address = number(&cpu->submitted, bio);
	if (may_be_in_flight(filter_of(address)) && !stale_entry(address, cpu))
		return;
	task = current_task();
	tgid = current_tgid(task);
	if (tgid == config.self) {
		cpu->own_ops++;
		return;
	}
	if (config.bio_list_valid && READ_TASK(task, bio_list)) {
		cpu->second_level_ops++;
		return;
	}
	bio_look(bio, &facts);
	slot = slot_of(bio, &facts, cpu);
	if ((state.slot_flags[slot] & SLOT_LOWER) && (!config.bio_list_valid || (READ_TASK(task, flags) & PF_KTHREAD))) {
		cpu->second_level_ops++;
		return;
	}
	opf = facts.opf;
	size = facts.size;
	op = op_of(opf, size);
	if ((config.ops || config.by_device || config.by_pid || config.by_comm || config.by_cgroup || config.excludes) &&
	    !wanted(task, bio, tgid, op, slot)) {
		cpu->filtered_ops++;
		return;
	}
	z = bpf_map_lookup_elem(&counters, &slot);
	if (!z)
		return;
	window = state.window;
	counter = op;
	barrier_var(counter); /* clang knows that op is in bounds, the verifier does not */
	exact = &z->exact[window & 1][counter & OP_MASK];
	exact->ops++;
	exact->bytes += size;
	stratum = op == OP_READ ? STRATUM_READ : op == OP_WRITE ? STRATUM_WRITE : STRATUM_OTHER;
	if (stratum_bio(&z->strata[stratum], &weight))
		bio_sample(ctx, bio, task, cpu, address, slot, op, size, opf, weight, window);
}

/* ---- the bios of a request ---- */

#define REQUEST_BIOS 256

/* The mirror of the kernel's own loop over a request's bios, which have not been ended yet at block_rq_complete. */
static __always_inline void request_walk(struct request *rq, u32 status, u32 nr, struct cpu_state *cpu, struct ending *ending)
{
	struct bio *bio = READ(rq, bio);
	u32 i, size;

	for (i = 0; i < REQUEST_BIOS && bio; i++) {
		size = READ(bio, bi_iter.bi_size);
		if (size > nr) /* only a part of this one */
			return;
		bio_ended(bio, status, ENDING_REQUEST, ending);
		nr -= size;
		if (!nr)
			return;
		bio = READ(bio, bi_next);
	}
	if (bio)
		lose(cpu, LOSS_REQUEST_TOO_LONG);
}

static __always_inline void request_completed(struct request *rq, u32 status, u32 nr)
{
	struct cpu_state *cpu;

	if (!state.active || (READ(rq, rq_flags) & config.flush_seq))
		return;
	cpu = this_cpu();
	if (!cpu)
		return;
	request_walk(rq, request_status(status), nr, cpu, ending_begin(cpu, ENDING_REQUEST));
	ending_end(cpu, ENDING_REQUEST);
}

/* Has the bio of an entry in the map ended without our hooks? A kernel may skip them (a kprobe in another program, a task
 * that is not to be traced), and nothing says so. bio_endio lets go of a bio's bi_blkg, which every bio in flight has where
 * there are block cgroups: user space runs this over the entries that it finds. Returns enum bio_state. */
SEC("?raw_tp")
int check_bio(struct bpf_raw_tracepoint_args *ctx)
{
	struct bio *bio = (struct bio *)ctx->args[0];

	if (!bpf_core_field_exists(bio->bi_blkg))
		return BIO_UNKNOWN;
	if ((u64)BPF_CORE_READ(bio, bi_end_io) != ctx->args[1] || (u64)BPF_CORE_READ(bio, bi_private) != ctx->args[2] ||
	    !BPF_CORE_READ(bio, bi_blkg))
		return BIO_ENDED;
	return BIO_IN_FLIGHT;
}

/* The length of a tick: user space runs this twice and compares clocks. */
SEC("?raw_tp")
int read_jiffies(void *ctx)
{
	state.jiffies = bpf_jiffies64();
	return 0;
}

/* ---- COMMAND's descendants ---- */

static __always_inline void task_forked(struct task_struct *parent, struct task_struct *child)
{
	u32 from = READ(parent, tgid), to = READ(child, tgid);
	u8 one = 1;

	if (from != to && bpf_map_lookup_elem(&filter_pids, &from))
		bpf_map_update_elem(&filter_pids, &to, &one, BPF_ANY);
}

static __always_inline void task_exited(struct task_struct *task)
{
	u32 tgid = READ(task, tgid);

	if (READ(task, signal, live.counter) == 0)
		bpf_map_delete_elem(&filter_pids, &tgid);
}

#endif
