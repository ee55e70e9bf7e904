/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Which device a bio is for, and whether the filters want it: decided when it is submitted, since its completion runs in
 * somebody else's context. Included by core.bpf.h. */
#ifndef BLKPROF_BPF_WANTED_H
#define BLKPROF_BPF_WANTED_H

/* ---- device slots ---- */

static __noinline u32 slot_claim(u32 dev, u32 disk, struct slot_info *info)
{
	u8 flags = 0;
	u32 i, slot, *known = bpf_map_lookup_elem(&slots, &dev);

	if (known) {
		slot = *known;
		goto cache;
	}
	for (i = 0; i < 64; i++) {
		slot = (dev + (dev >> 20) * 31 + i) % (RECORD_SLOTS - 1);
		if (!bpf_map_update_elem(&slot_owners, &slot, info, BPF_NOEXIST))
			goto claimed;
	}
	return RECORD_SLOTS - 1;
claimed:
	if (config.by_device && !bpf_map_lookup_elem(&filter_devices, &dev) && !bpf_map_lookup_elem(&filter_devices, &disk))
		flags = SLOT_EXCLUDED;
	if (bpf_map_lookup_elem(&lower_devices, &dev))
		flags |= SLOT_LOWER;
	state.slot_flags[slot & (RECORD_SLOTS - 1)] = flags;
	/* Another CPU may have claimed a slot for the same device: both count, user space adds them up. */
	bpf_map_update_elem(&slots, &dev, &slot, BPF_NOEXIST);
cache:
	state.slot_cache[dev & (RECORD_SLOTS - 1)] = (u64)dev << 32 | slot;
	return slot;
}

static __always_inline u32 slot_of(struct bio *bio, const struct bio_facts *facts, struct cpu_state *cpu)
{
	u32 dev = bio_device(bio, facts), disk;
	u64 cached = state.slot_cache[dev & (RECORD_SLOTS - 1)];
	struct slot_info info = {};
	struct gendisk *gd;

	if (cached >> 32 == dev && dev)
		return (u32)cached & (RECORD_SLOTS - 1);
	gd = bio_disk(bio);
	if (!dev || !gd)
		lose(cpu, LOSS_READ_ERROR);
	disk = (u32)READ(gd, major) << 20 | (u32)READ(gd, first_minor);
	info.dev = dev;
	info.disk = disk;
	READ_STRING(info.name, gd, disk_name);
	dev = slot_claim(dev, disk, &info);
	if (dev == RECORD_SLOTS - 1)
		lose(cpu, LOSS_SLOTS_FULL);
	return dev & (RECORD_SLOTS - 1);
}

/* ---- filters, decided at submission ---- */

static __always_inline u64 cgroup_id(struct cgroup *cg)
{
	return cg ? BPF_CORE_READ(cg, kn, id) : 0;
}

static __always_inline struct cgroup *task_cgroup(struct task_struct *task, s32 subsys)
{
	struct css_set *set = READ_TASK(task, cgroups);

	if (subsys < 0)
		return BPF_CORE_READ(set, dfl_cgrp);
	return css_cgroup(set, subsys);
}

/* The cgroup that a kernel thread works for is the one that the bio names. */
static __always_inline struct cgroup *bio_cgroup(struct bio *bio)
{
	struct blkcg_gq *blkg = READ(bio, bi_blkg);

	return blkg ? READ(blkg, blkcg, css.cgroup) : 0;
}

/* Whether it or one that it is in is among those that are wanted (or, with exclude, kept out). */
static __noinline bool cgroup_listed(struct cgroup *cg, s32 subsys, u32 exclude)
{
	struct cgroup_subsys_state *css;
	u32 i, depth;
	u64 id;

	for (depth = 0; depth < 12 && cg; depth++) {
		id = BPF_CORE_READ(cg, kn, id);
		for (i = 0; i < RECORD_CGROUPS; i++) {
			if (i >= config.n_cgroups)
				break;
			if (config.cgroups[i].id == id && config.cgroups[i].subsys == subsys && config.cgroups[i].exclude == exclude)
				return true;
		}
		css = BPF_CORE_READ(cg, self.parent);
		cg = css ? BPF_CORE_READ(css, cgroup) : 0;
	}
	return false;
}

static __noinline bool task_in_cgroups(struct task_struct *task, struct cgroup *owner, u32 exclude)
{
	s32 last = -2, subsys;
	u32 i;

	for (i = 0; i < RECORD_CGROUPS; i++) {
		if (i >= config.n_cgroups)
			break;
		subsys = config.cgroups[i].subsys;
		if (subsys == last || config.cgroups[i].exclude != exclude)
			continue;
		last = subsys;
		if (cgroup_listed(owner ? owner : task_cgroup(task, subsys), subsys, exclude))
			return true;
	}
	return false;
}

static __always_inline bool comm_wanted(struct comm_key *comm)
{
	u8 *rule;

	if (!config.by_comm && !(config.excludes & EXCLUDE_COMM))
		return true;
	rule = bpf_map_lookup_elem(&filter_comms, comm);
	return rule ? *rule != COMM_EXCLUDED : !config.by_comm;
}

/* The current process, whatever its thread is called. */
static __always_inline bool process_wanted(u32 tgid)
{
	if (config.by_pid && !bpf_map_lookup_elem(&filter_pids, &tgid))
		return false;
	if (config.by_cgroup && !task_in_cgroups(current_task(), 0, 0))
		return false;
	return !(config.excludes & EXCLUDE_CGROUP) || !task_in_cgroups(current_task(), 0, 1);
}

static __always_inline bool wanted(struct task_struct *task, struct bio *bio, u32 tgid, u8 op, u32 slot)
{
	struct comm_key comm = {};
	struct cgroup *owner = 0;

	if (config.ops && !(config.ops & (1u << op)))
		return false;
	if (config.by_device && (state.slot_flags[slot & (RECORD_SLOTS - 1)] & SLOT_EXCLUDED))
		return false;
	if (config.by_pid && !bpf_map_lookup_elem(&filter_pids, &tgid))
		return false;
	if (config.by_comm || (config.excludes & EXCLUDE_COMM)) {
		bpf_get_current_comm(comm.comm, sizeof(comm.comm));
		if (!comm_wanted(&comm))
			return false;
	}
	if (!config.by_cgroup && !(config.excludes & EXCLUDE_CGROUP))
		return true;
	if (READ_TASK(task, flags) & PF_KTHREAD)
		owner = bio_cgroup(bio);
	if (config.by_cgroup && !task_in_cgroups(task, owner, 0))
		return false;
	return !(config.excludes & EXCLUDE_CGROUP) || !task_in_cgroups(task, owner, 1);
}

#endif
