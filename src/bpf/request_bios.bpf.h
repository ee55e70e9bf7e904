/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Block I/O that the threads submit. Raw tracepoints: a bio's address is a number there. Included by request.bpf.c. */
#ifndef BLKPROF_BPF_REQUEST_BIOS_H
#define BLKPROF_BPF_REQUEST_BIOS_H

#define BIOS_PER_REQUEST 256

static __always_inline u32 device_of(struct bio *bio)
{
	struct gendisk *gd;

	if (bpf_core_field_exists(bio->bi_bdev)) {
		gd = BPF_CORE_READ(bio, bi_bdev, bd_disk);
	} else {
		gd = BPF_CORE_READ((struct bio___disk *)bio, bi_disk);
	}
	return (u32)BPF_CORE_READ(gd, major) << 20 | (u32)BPF_CORE_READ(gd, first_minor);
}

static __always_inline void bio_submitted(struct bio *bio)
{
	struct req_thread *t = this_thread();
	struct req_bio b = {};
	u64 key = (u64)bio;
	u32 op;

	if (!t)
		return;
	/* Below a stacked device the same data would count twice. */
	if (config.bio_list_valid && BPF_CORE_READ((struct task_struct *)this_task(), bio_list))
		return;
	op = BPF_CORE_READ(bio, bi_opf);
	b.size = BPF_CORE_READ(bio, bi_iter.bi_size);
	b.write = (op & REQ_OP_MASK) != REQ_OP_READ;
	b.device = device_of(bio);
	b.tid = t->tid;
	b.submit = bpf_ktime_get_ns();
	if (b.write) {
		t->sums.disk_write_ops++;
		t->sums.disk_write_bytes += b.size;
	} else {
		t->sums.disk_read_ops++;
		t->sums.disk_read_bytes += b.size;
	}
	if (t->call == CALL_NONE || (t->call >= CALL_SOCKET_READ && t->call <= CALL_POLL)) {
		t->sums.fault_disk_ops++;
		t->sums.fault_disk_bytes += b.size;
	}
	if (bpf_map_update_elem(&bios, &key, &b, BPF_ANY))
		lose(REQ_LOSS_BIOS);
	else
		__sync_fetch_and_add(&state.bios_in_flight, 1);
}

SEC("?raw_tp/block_bio_queue")
int on_bio_queue(struct bpf_raw_tracepoint_args *ctx)
{
	bio_submitted((struct bio *)ctx->args[0]);
	return 0;
}

/* Up to 5.10 the queue comes first. */
SEC("?raw_tp/block_bio_queue")
int on_queue_bio_queue(struct bpf_raw_tracepoint_args *ctx)
{
	bio_submitted((struct bio *)ctx->args[1]);
	return 0;
}

static __noinline int bio_done(u64 key)
{
	struct req_bio *b = bpf_map_lookup_elem(&bios, &key);
	struct req_thread *t;
	u64 took;
	u32 tid;

	if (!b)
		return 0;
	tid = b->tid;
	took = bpf_ktime_get_ns() - b->submit;
	t = bpf_map_lookup_elem(&threads, &tid);
	if (t) {
		__sync_fetch_and_add(&t->sums.disk_done, 1);
		__sync_fetch_and_add(&t->sums.disk_ns, took);
		if (took > t->sums.disk_max_ns) {
			t->sums.disk_max_ns = took;
			t->sums.disk_max_dev = b->device;
		}
	}
	if (!bpf_map_delete_elem(&bios, &key))
		__sync_fetch_and_add(&state.bios_in_flight, -1);
	return 0;
}

/* Of bios that do not end through a request. */
SEC("?raw_tp/block_bio_complete")
int on_bio_complete(struct bpf_raw_tracepoint_args *ctx)
{
	if (state.bios_in_flight)
		bio_done(ctx->args[1]);
	return 0;
}

SEC("?raw_tp/block_rq_complete")
int on_rq_complete(struct bpf_raw_tracepoint_args *ctx)
{
	struct request *rq = (struct request *)ctx->args[0];
	u32 left = (u32)ctx->args[2], size, i;
	struct bio *bio;

	/* The data phase of a flush sequence comes by here before its bios have ended. */
	if (!state.bios_in_flight || (BPF_CORE_READ(rq, rq_flags) & config.flush_seq))
		return 0;
	bio = BPF_CORE_READ(rq, bio);
	for (i = 0; i < BIOS_PER_REQUEST && bio; i++) {
		size = BPF_CORE_READ(bio, bi_iter.bi_size);
		if (size > left)
			break;
		bio_done((u64)bio);
		left -= size;
		if (!left)
			break;
		bio = BPF_CORE_READ(bio, bi_next);
	}
	return 0;
}

#endif
