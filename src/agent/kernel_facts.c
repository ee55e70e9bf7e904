// SPDX-License-Identifier: Apache-2.0
#include "agent/kernel_facts.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static struct btf *load(struct error *e)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct utsname u;
	int err = errno;

	if (btf)
		return btf;
	if (uname(&u))
		u.release[0] = 0;
	error_set(e, -ENOENT, "kernel %s has no BTF (%s): boot one built with CONFIG_DEBUG_INFO_BTF, which distributions' have",
		  u.release, strerror(err));
	errno = ENOENT;
	return NULL;
}

// Value of an enumerator of any enum, anonymous ones included; false when there is none.
static bool enumerator(const struct btf *btf, const char *name, int32_t *ret)
{
	uint32_t n = btf__type_cnt(btf);

	for (uint32_t id = 1; id < n; id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		const struct btf_enum *v;

		if (!btf_is_enum(t))
			continue;
		v = btf_enum(t);
		for (int i = 0; i < btf_vlen(t); i++) {
			if (strcmp(btf__name_by_offset(btf, v[i].name_off), name))
				continue;
			*ret = v[i].val;
			return true;
		}
	}
	return false;
}

static bool has_member(const struct btf *btf, const char *type, const char *member)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

	for (int i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), member))
			return true;
	return false;
}

// How many arguments a tracepoint has; 0 when it is not there. The type of its callback has one more in front.
static unsigned tracepoint_arguments(const struct btf *btf, const char *name)
{
	char type[80];
	int id;
	const struct btf_type *t;

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	id = btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF);
	t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	if (t && btf_is_ptr(t))
		t = btf__type_by_id(btf, t->type);
	return t && btf_is_func_proto(t) && btf_vlen(t) ? btf_vlen(t) - 1 : 0;
}

// Workers are found with these types; the tracepoint's arguments were reordered twice.
static uint8_t async_request(const struct btf *btf)
{
	if (!has_member(btf, "io_worker", "cur_work") || !has_member(btf, "io_kiocb", "work") ||
	    (!has_member(btf, "task_struct", "worker_private") && !has_member(btf, "task_struct", "pf_io_worker")))
		return 0;
	switch (tracepoint_arguments(btf, "io_uring_queue_async_work")) {
	case 2: // request, rw
		return 1;
	case 5: // ring, rw, request, work, flags: up to 5.16
		return 3;
	case 6:
	case 7: // ring, request, data, (opcode,) flags, work, rw: up to 5.19
		return 2;
	}
	return 0;
}

int kernel_facts_subsys(const char *controller, int32_t *ret)
{
	struct btf *btf = load(NULL);
	char name[64];
	bool found;

	if (!btf)
		return -ENOENT;
	// The block controller's directory is "blkio", its identifier "io".
	snprintf(name, sizeof(name), "%s_cgrp_id", strcmp(controller, "blkio") ? controller : "io");
	found = enumerator(btf, name, ret);
	btf__free(btf);
	return found ? 0 : -ENOENT;
}

int kernel_facts_read(struct kernel_facts *ret, struct error *e)
{
	struct kernel_facts f = { .memory_subsys = -1, .pids_subsys = -1, .blkio_subsys = -1 };
	struct btf *btf = load(e);
	int32_t bit;

	if (!btf)
		return -ENOENT;
	// A define (1 << 4) up to 6.6, an enumerator that counts bits from 6.12.
	f.flush_seq = enumerator(btf, "__RQF_FLUSH_SEQ", &bit) ? 1u << (bit & 31) : 1u << 4;
	f.bio_has_bdev = has_member(btf, "bio", "bi_bdev");
	// From 5.13 to 5.17 the tracepoint lies where bio_list is always set. submit_bio_noacct_nocheck came with 5.18.
	f.bio_list_valid = !f.bio_has_bdev || btf__find_by_name_kind(btf, "submit_bio_noacct_nocheck", BTF_KIND_FUNC) > 0;
	f.queue_first = tracepoint_arguments(btf, "block_bio_queue") == 2;
	f.issue_queue_first = tracepoint_arguments(btf, "block_rq_issue") == 2;
	f.switch_state = tracepoint_arguments(btf, "sched_switch") >= 4;
	f.hold_cpu = btf__find_by_name_kind(btf, "bpf_preempt_disable", BTF_KIND_FUNC) > 0 &&
		     btf__find_by_name_kind(btf, "bpf_preempt_enable", BTF_KIND_FUNC) > 0;
	f.rdonly_cast = btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
	f.async_request = async_request(btf);
	enumerator(btf, "memory_cgrp_id", &f.memory_subsys);
	enumerator(btf, "pids_cgrp_id", &f.pids_subsys);
	enumerator(btf, "io_cgrp_id", &f.blkio_subsys);
	btf__free(btf);
	*ret = f;
	return 0;
}
