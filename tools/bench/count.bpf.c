// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// Counts every bio that is queued, by process, device and operation: the exact counters that a profile is held against.
#include "bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "count_rec.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct count_key);
	__type(value, struct count_value);
} counts SEC(".maps");

unsigned long long lost SEC(".data.lost");

SEC("?tp_btf/block_bio_queue")
int BPF_PROG(count_bio, struct bio *bio)
{
	struct count_key key = { .tgid = bpf_get_current_pid_tgid() >> 32 };
	struct count_value zero = {}, *value;
	u32 size = bio->bi_iter.bi_size;

	key.disk_major = bio->bi_bdev->bd_disk->major;
	key.disk_minor = bio->bi_bdev->bd_disk->first_minor;
	key.op = bio->bi_opf & REQ_OP_MASK;
	key.empty = !size;
	value = bpf_map_lookup_elem(&counts, &key);
	if (!value) {
		bpf_map_update_elem(&counts, &key, &zero, BPF_NOEXIST);
		value = bpf_map_lookup_elem(&counts, &key);
	}
	if (!value) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	value->ops++;
	value->bytes += size;
	return 0;
}
