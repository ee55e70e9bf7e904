// SPDX-License-Identifier: Apache-2.0
// Takes probes away in the background: the kernel makes each closer wait until no CPU runs the probe any more, tens of
// milliseconds for one, in which nobody would read events. Closers that wait at once wait together.
#ifndef AGENT_LINK_CLOSER_H
#define AGENT_LINK_CLOSER_H

struct link_closer;
struct bpf_link;

struct link_closer *link_closer_new(void);
void link_closer_free(struct link_closer *c); // when all are gone
// Owns the link. Where there is no memory for it, it is gone on return.
void link_closer_add(struct link_closer *c, struct bpf_link *link);

#endif
