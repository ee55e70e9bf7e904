/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Where kernels differ. Each entry says since when and may go when no supported kernel needs it. Included by
 * core.bpf.h; CORE_TYPED as there. */
#ifndef BLKPROF_BPF_COMPAT_H
#define BLKPROF_BPF_COMPAT_H

/* A field through a chain of pointers: plain loads where the verifier knows the type, probe reads elsewhere. */
#ifdef CORE_TYPED
#define READ_1(p, a) ((p)->a)
#define READ_2(p, a, b) ((p)->a->b)
#define READ_3(p, a, b, c) ((p)->a->b->c)
#define READ_PICK(p, a, b, c, name, ...) name
#define READ(...) READ_PICK(__VA_ARGS__, READ_3, READ_2, READ_1)(__VA_ARGS__)
#define READ_BIT(p, field) BPF_CORE_READ_BITFIELD(p, field)
#else
#define READ(p, ...) BPF_CORE_READ(p, __VA_ARGS__)
#define READ_BIT(p, field) BPF_CORE_READ_BITFIELD_PROBED(p, field)
#endif
#define READ_STRING(out, p, field) \
	bpf_probe_read_kernel_str(out, sizeof(out), (const void *)__builtin_preserve_access_index(&(p)->field))

/* bio->bi_disk and a partition number became bio->bi_bdev in 5.12: up to 5.11 the device is the whole disk. */
static __always_inline struct gendisk *bio_disk(struct bio *bio)
{
	if (!bpf_core_field_exists(bio->bi_bdev))
		return READ((struct bio___disk *)bio, bi_disk);
	return READ(bio, bi_bdev, bd_disk);
}

/* What is looked at of every bio that is submitted. */
struct bio_facts {
	struct block_device *bdev; /* since 5.12 */
	u32 opf, size;
};

#ifdef CORE_TYPED
static __always_inline void bio_look(struct bio *bio, struct bio_facts *ret)
{
	ret->bdev = bpf_core_field_exists(bio->bi_bdev) ? bio->bi_bdev : 0;
	ret->opf = bio->bi_opf;
	ret->size = bio->bi_iter.bi_size;
}
#else
#define BIO_HEAD 64 /* bytes; all three lie in the first 48 on every kernel from 5.10 to 7.2 */
#define BIO_AT(field) bpf_core_field_offset(struct bio, field)

/* A call costs more than the bytes do: one read for all of them. */
static __always_inline void bio_look(struct bio *bio, struct bio_facts *ret)
{
	u64 head[BIO_HEAD / 8] = {};
	u8 *at = (u8 *)head;

	bpf_probe_read_kernel(head, sizeof(head), bio);
	ret->bdev = bpf_core_field_exists(bio->bi_bdev) ? *(struct block_device **)(at + BIO_AT(bi_bdev)) : 0;
	ret->opf = *(u32 *)(at + BIO_AT(bi_opf));
	ret->size = *(u32 *)(at + BIO_AT(bi_iter.bi_size));
}
#endif

static __always_inline u32 bio_device(struct bio *bio, const struct bio_facts *facts)
{
	struct block_device *bdev = facts->bdev;
	struct gendisk *gd;

	if (bpf_core_field_exists(bio->bi_bdev))
		return READ(bdev, bd_dev);
	gd = bio_disk(bio);
	return (u32)READ(gd, major) << 20 | (u32)READ(gd, first_minor);
}

#include "bpf/task_btf.bpf.h"

/* Before, the current task is a number even to typed programs, and READ_TASK a probe read. */
#ifdef CORE_TYPED
#define TYPED_TASK HAS_TASK_BTF
#else
#define TYPED_TASK 0
#endif
#define READ_TASK(task, field) (TYPED_TASK ? READ(task, field) : BPF_CORE_READ(task, field))

/* Of the current task; where it is no typed pointer the helper is cheaper. */
static __always_inline u32 current_tgid(struct task_struct *task)
{
	return TYPED_TASK ? READ(task, tgid) : bpf_get_current_pid_tgid() >> 32;
}

static __always_inline struct task_struct *current_task(void)
{
	if (TYPED_TASK)
		return (struct task_struct *)bpf_get_current_task_btf();
	return (struct task_struct *)bpf_get_current_task();
}

/* task_struct.state became __state in 5.14. */
static __always_inline u32 task_state(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return READ(task, __state);
	return (u32)BPF_CORE_READ((struct task_struct___long_state *)task, state);
}

/* The second argument of block_rq_complete: an errno up to 5.16, a blk_status_t from 5.17 on. */
static __always_inline u32 request_status(u32 status)
{
	return status == (u32)-EAGAIN ? BLK_STS_AGAIN : status & 0xff;
}

static __always_inline bool is_zone_append(u32 op)
{
	if (bpf_core_enum_value_exists(enum req_op, REQ_OP_ZONE_APPEND))
		return op == bpf_core_enum_value(enum req_op, REQ_OP_ZONE_APPEND);
	if (bpf_core_enum_value_exists(enum req_opf___old, REQ_OP_ZONE_APPEND___old))
		return op == bpf_core_enum_value(enum req_opf___old, REQ_OP_ZONE_APPEND___old);
	return false;
}

#include "bpf/hold_cpu.bpf.h"

/* REQ_CGROUP_PUNT: bios that submit_bio sees twice, up to 6.3. */
enum req_flag_bits {
	__REQ_CGROUP_PUNT = 22,
};

static __always_inline bool is_punted(u32 opf)
{
#ifdef CORE_TRACEPOINT
	return false; /* block_bio_queue comes once, from the worker */
#else
	return bpf_core_enum_value_exists(enum req_flag_bits, __REQ_CGROUP_PUNT) &&
	       (opf & (1u << bpf_core_enum_value(enum req_flag_bits, __REQ_CGROUP_PUNT)));
#endif
}

static __always_inline struct cgroup *css_cgroup(struct css_set *set, s32 subsys)
{
	struct cgroup_subsys_state *css = 0;

	bpf_core_read(&css, sizeof(css), &set->subsys[subsys & 15]);
	return css ? BPF_CORE_READ(css, cgroup) : 0;
}

/* What the current task does as an io_uring worker. */
static __always_inline struct io_wq_work *current_work(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct io_worker *worker;

	if (bpf_core_field_exists(task->worker_private))
		worker = BPF_CORE_READ(task, worker_private);
	else
		worker = BPF_CORE_READ((struct task_struct___io_worker *)task, pf_io_worker);
	return worker ? BPF_CORE_READ(worker, cur_work) : 0;
}

#define KERNEL_STACK_BYTES 16384 /* x86-64 without KASAN, and arm64 with 4 KiB pages */

/* User registers of the current task: bpf_task_pt_regs since 5.15 (it knows what a kernel with FRED keeps above them); before,
 * they lie at the very top of the kernel stack. */
static __always_inline int user_registers(u64 *ip, u64 *sp, u64 *bp)
{
	struct task_struct *task;
	struct pt_regs *regs;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) {
		regs = (struct pt_regs *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
	} else {
		task = (struct task_struct *)bpf_get_current_task();
		regs = (struct pt_regs *)(BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES - bpf_core_type_size(struct pt_regs));
	}
	*ip = BPF_CORE_READ(regs, ip);
	*sp = BPF_CORE_READ(regs, sp);
	*bp = BPF_CORE_READ(regs, bp);
	return !*sp;
}

#endif
