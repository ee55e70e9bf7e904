// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// When a JVM stands still: its own probes of collections and safepoints (JDK's hotspot_dtrace.d), as uprobes.
#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>

#include "bpf/request_rec.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#include "bpf/pauses.bpf.h"

static __always_inline struct req_pauses *these(void)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;

	return bpf_map_lookup_elem(&pauses, &tgid);
}

static __always_inline void begin(u64 *word)
{
	if (!(*word & 1))
		*word = ((*word >> 1) - bpf_ktime_get_ns()) << 1 | 1;
}

static __always_inline void end(u64 *word)
{
	if (*word & 1)
		*word = ((*word >> 1) + bpf_ktime_get_ns()) << 1;
}

/* A collection that becomes a full one on its way is told of twice. */
SEC("uprobe")
int on_gc_begin(void *regs)
{
	struct req_pauses *p = these();

	if (!p)
		return 0;
	if (!p->depth)
		begin(&p->gc);
	p->depth++;
	return 0;
}

SEC("uprobe")
int on_gc_end(void *regs)
{
	struct req_pauses *p = these();

	/* The end of one whose begin was before we looked. */
	if (!p || !p->depth)
		return 0;
	p->depth--;
	if (!p->depth)
		end(&p->gc);
	return 0;
}

SEC("uprobe")
int on_safepoint_begin(void *regs)
{
	struct req_pauses *p = these();

	if (p)
		begin(&p->safepoint);
	return 0;
}

SEC("uprobe")
int on_safepoint_end(void *regs)
{
	struct req_pauses *p = these();

	if (p)
		end(&p->safepoint);
	return 0;
}
