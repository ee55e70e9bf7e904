// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// An example of a source of metrics: how long threads wait for the journal of ext4. In ext4's fsync a thread first waits for
// its data, which is a wait for I/O, and then for the journal to commit, which the kernel's own thread does: that wait is none.
#include <linux/types.h>
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct task_struct {
	int pid;
	unsigned int in_iowait : 1;
} __attribute__((preserve_access_index));

// What blkprof reads: a thread's sums, which only grow. The form is fixed by the ABI.
struct sums {
	__u64 journal_ns, syncs, unused[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct sums);
} sums SEC(".maps");

// Threads that are in ext4's fsync, and since when they wait in it.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u64);
} syncing SEC(".maps");

SEC("tp_btf/ext4_sync_file_enter")
int BPF_PROG(on_sync)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	__u64 not_waiting = 0;

	bpf_map_update_elem(&syncing, &tid, &not_waiting, BPF_ANY);
	return 0;
}

SEC("tp_btf/ext4_sync_file_exit")
int BPF_PROG(on_synced)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct sums none = {}, *s;

	bpf_map_delete_elem(&syncing, &tid);
	bpf_map_update_elem(&sums, &tid, &none, BPF_NOEXIST);
	s = bpf_map_lookup_elem(&sums, &tid);
	if (s)
		s->syncs++;
	return 0;
}

static void woken(__u32 tid)
{
	struct sums none = {}, *s;
	__u64 *since = bpf_map_lookup_elem(&syncing, &tid);

	if (!since || !*since)
		return;
	bpf_map_update_elem(&sums, &tid, &none, BPF_NOEXIST);
	s = bpf_map_lookup_elem(&sums, &tid);
	if (s)
		s->journal_ns += bpf_ktime_get_ns() - *since;
	*since = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	__u32 tid = prev->pid;
	__u64 *since = bpf_map_lookup_elem(&syncing, &tid);

	if (since && !preempted && !BPF_CORE_READ_BITFIELD_PROBED(prev, in_iowait))
		*since = bpf_ktime_get_ns();
	woken(next->pid);
	return 0;
}

// A thread's number is used again: its sums end with it.
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	__u32 tid = task->pid;

	bpf_map_delete_elem(&sums, &tid);
	bpf_map_delete_elem(&syncing, &tid);
	return 0;
}
