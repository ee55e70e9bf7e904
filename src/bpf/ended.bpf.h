/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The end of a bio: its entry is taken out of the map of bios in flight and its record sent. Included by core.bpf.h. */
#ifndef BLKPROF_BPF_ENDED_H
#define BLKPROF_BPF_ENDED_H

static __always_inline u64 wakeup(void)
{
	/* User space comes by itself every 100 ms; it is woken only when that is too slow. */
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > config.ring_wakes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* False when somebody else has deleted it. A map's lock can be refused (-EBUSY up to 6.5, a time-out from 6.15 on). */
static __always_inline bool in_flight_delete(u64 address, struct cpu_state *cpu)
{
	long err = bpf_map_delete_elem(&in_flight, &address);

	if (err && err != -2 /* ENOENT */)
		err = bpf_map_delete_elem(&in_flight, &address);
	if (err && err != -2)
		lose(cpu, LOSS_MAP_BUSY);
	return !err;
}

/* Sends the entry's record and deletes it; only who deletes it sends it, so that two completions cannot both. */
static __noinline void bio_charge(struct in_flight *e, u64 address, u64 end, u32 reason)
{
	struct cpu_state *cpu = this_cpu();
	struct bio_rec rec;

	if (!cpu || !e)
		return;
	rec.type = RECORD_BIO;
	rec.end_reason = reason;
	rec.end = end;
	__builtin_memcpy(&rec.bio, e, sizeof(rec.bio)); /* another bio's as soon as it is deleted */
	if (!in_flight_delete(address, cpu))
		return;
	__sync_fetch_and_add(&filter_of(address)->out, 1);
	__sync_fetch_and_add(&cpu->out, 1);
	if (bpf_ringbuf_output(&ring, &rec, sizeof(rec), wakeup()))
		lose(cpu, LOSS_RING_FULL);
	watch_ended(address, &rec);
}

/* Global functions are verified once, not once for each turn of a loop that calls them: with static ones the walk over a
 * request's bios is too complex for 6.1. They take numbers only and must return one. */

/* One ended part of a bio that may be in flight. `remaining` counts this part too (__bi_remaining before it ends). */
__noinline int part_ended(u64 address, u64 end_io, u64 private, s32 remaining, u32 status)
{
	struct in_flight *e = bpf_map_lookup_elem(&in_flight, &address);
	struct cpu_state *cpu;
	u64 now;

	if (!e)
		return 0;
	now = bpf_ktime_get_ns();
	if (e->end_io != end_io || e->private_ != private) {
		cpu = this_cpu();
		if (cpu && in_flight_delete(address, cpu)) {
			__sync_fetch_and_add(&filter_of(address)->out, 1);
			__sync_fetch_and_add(&cpu->out, 1);
			lose(cpu, LOSS_MISMATCH);
		}
		return 0;
	}
	if (remaining > 1) {
		e->last = now;
		return 0;
	}
	bio_charge(e, address, now, status == BLK_STS_AGAIN ? END_AGAIN : END_COMPLETED);
	return 0;
}

static __always_inline struct ending *ending_begin(struct cpu_state *cpu, enum ending_hook hook)
{
	u32 level = cpu->ending[hook].level++ & (ENDING_LEVELS - 1);
	struct ending *ending;

	barrier_var(level);
	ending = &cpu->ending[hook].at[level & (ENDING_LEVELS - 1)];
	ending->parent = 0;
	return ending;
}

static __always_inline void ending_end(struct cpu_state *cpu, enum ending_hook hook)
{
	cpu->ending[hook].level--;
}

/* The one that ending_begin gave last. */
static __always_inline struct ending *ending_now(struct cpu_state *cpu, u32 hook)
{
	struct ending_levels *levels = hook == ENDING_REQUEST ? &cpu->ending[ENDING_REQUEST] : &cpu->ending[ENDING_BIO];
	u32 level = levels->level - 1;

	barrier_var(level);
	return &levels->at[level & (ENDING_LEVELS - 1)];
}

#define CHAIN_DEPTH 4

/* The parents of a chained part that has ended: each holds a reference per child, and completes inside bio_endio's own
 * loop, unseen by any hook, with the last of them. Parents are addresses here, so they are probe-read in every backend. */
__noinline int parents_ended(u64 address, u32 status, u32 hook)
{
	struct cpu_state *cpu = this_cpu();
	struct ending *ending;
	struct bio *bio;
	u64 end_io, private;
	s32 remaining;
	u32 depth;

	if (!cpu)
		return 0;
	ending = ending_now(cpu, hook);
	if (address != ending->parent) {
		ending->parent = address;
		ending->ended = 0;
	}
	for (depth = 0; depth < CHAIN_DEPTH && address; depth++) {
		bio = (struct bio *)address;
		end_io = (u64)BPF_CORE_READ(bio, bi_end_io);
		private = (u64)BPF_CORE_READ(bio, bi_private);
		remaining = BPF_CORE_READ(bio, __bi_remaining.counter);
		if (!depth)
			remaining -= ending->ended++;
		if (may_be_in_flight(filter_of(address)))
			part_ended(address, end_io, private, remaining, status);
		if (remaining > 1 || end_io != chain_endio())
			return 0;
		address = private;
	}
	return 0;
}

/* This bio, or this part of it, has ended. `status` is that of a request; a bio's own is read when it is needed. */
static __always_inline void bio_ended(struct bio *bio, u32 status, enum ending_hook hook, struct ending *ending)
{
	u64 address, end_io, private;
	s32 remaining;

	address = number(&ending->pointer, bio);
	end_io = (u64)READ(bio, bi_end_io);
	if (!may_be_in_flight(filter_of(address)) && end_io != chain_endio())
		return;
	end_io = number(&ending->pointer, (const void *)end_io);
	private = number(&ending->pointer, READ(bio, bi_private));
	remaining = READ(bio, __bi_remaining.counter);
	if (hook == ENDING_BIO)
		status = READ(bio, bi_status);
	/* Parts of one bio in one request are walked before any of them has given its reference back. */
	if (address == ending->parent)
		remaining -= ending->ended;
	if (may_be_in_flight(filter_of(address)))
		part_ended(address, end_io, private, remaining, status);
	if (remaining <= 1 && end_io == chain_endio())
		parents_ended(private, status, hook);
}

/* What a backend calls from a hook on the end of one bio. */
static __always_inline void bio_completed(struct bio *bio)
{
	struct cpu_state *cpu;

	if (!state.active)
		return;
	cpu = this_cpu();
	if (!cpu)
		return;
	bio_ended(bio, 0, ENDING_BIO, ending_begin(cpu, ENDING_BIO));
	ending_end(cpu, ENDING_BIO);
}

#endif
