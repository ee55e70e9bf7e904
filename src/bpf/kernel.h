/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The few kernel types that the programs read, by the names of their fields only: preserve_access_index makes libbpf
 * relocate every access to the running kernel's BTF, so neither order nor offsets matter here. Kernels 5.10 to 7.2. */
#ifndef BLKPROF_BPF_KERNEL_H
#define BLKPROF_BPF_KERNEL_H

#define __VMLINUX_H__ /* bpf_tracing.h: registers by the kernel's names */
#include <linux/types.h>
#include <linux/bpf.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0
typedef u8 blk_status_t;
typedef u32 blk_opf_t;
typedef u64 sector_t;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct kernfs_node {
	u64 id;
};

struct cgroup;
struct mm_struct;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup_subsys_state *subsys[14];
	struct cgroup *dfl_cgrp;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct signal_struct {
	atomic_t live;
};

struct bio_list {
	struct bio *head;
};

struct pt_regs {
	unsigned long bp, ip, sp, di, si, dx, cx, r8, ax, orig_ax;
};

struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
	void *stack;
	struct signal_struct *signal;
	struct css_set *cgroups;
	struct bio_list *bio_list;
	struct mm_struct *mm;
	void *worker_private;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	char comm[16];
	unsigned int __state;
	int on_rq;
	unsigned int in_iowait : 1;
};

/* Up to 5.13. */
struct task_struct___long_state {
	long state;
};

/* Up to 5.16. */
struct task_struct___io_worker {
	void *pf_io_worker;
};

struct io_wq_work {
};

struct io_worker {
	struct io_wq_work *cur_work;
};

struct io_kiocb {
	struct io_wq_work work;
};

struct gendisk {
	int major;
	int first_minor;
	char disk_name[32];
};

struct block_device {
	u32 bd_dev;
	struct gendisk *bd_disk;
};

struct bvec_iter {
	sector_t bi_sector;
	unsigned int bi_size;
};

struct bio;
typedef void(bio_end_io_t)(struct bio *);

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	blk_opf_t bi_opf;
	blk_status_t bi_status;
	struct bvec_iter bi_iter;
	atomic_t __bi_remaining;
	bio_end_io_t *bi_end_io;
	void *bi_private;
	struct blkcg_gq *bi_blkg;
};

/* Up to 5.11 a bio names its disk and a partition number. */
struct bio___disk {
	struct gendisk *bi_disk;
};

struct request {
	struct bio *bio;
	u32 rq_flags;
};

#pragma clang attribute pop

#define PF_IO_WORKER 0x10	/* 5.10 on */
#define PF_USER_WORKER 0x4000	/* 6.4 on; another flag's bit before, never set together with a user's own stack walk */
#define PF_FORKNOEXEC 0x40	/* forked, and runs its parent's program still */
#define PF_KTHREAD 0x200000
#define EAGAIN 11
#define BLK_STS_AGAIN 12

/* Bits and numbers of bi_opf that are the same from 5.4 to 7.2. */
#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_DISCARD 3
#define REQ_OP_SECURE_ERASE 5
#define REQ_OP_WRITE_ZEROES 9
#define REQ_PREFLUSH (1u << 18)

/* Zone append moves data and its number changed: 13 up to 5.19, 7 from 6.0, where the enum changed its name too. */
enum req_op {
	REQ_OP_ZONE_APPEND = 7,
};

enum req_opf___old {
	REQ_OP_ZONE_APPEND___old = 13,
};

#endif
