// SPDX-License-Identifier: Apache-2.0
#include "agent/request_pauses.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/jvm.h"
#include "agent/link_closer.h"
#include "agent/request_targets.h"
#include "elf/usdt.h"
#include "pauses.skel.h"

#define LOOKS 10
#define PLACES 8 // of one probe
#define PROBES 4

// An end is there before its begin: no pause goes on for ever.
static const struct {
	const char *program, *provider, *name;
} places_of[PROBES] = {
	{ "on_gc_end", "hotspot", "gc__end" },
	{ "on_gc_begin", "hotspot", "gc__begin" },
	{ "on_safepoint_end", "hs_private", "safepoint__end" },
	{ "on_safepoint_begin", "hs_private", "safepoint__begin" },
};

struct process {
	pid_t pid;
	unsigned looks; // that are left
	enum req_jvm is;
	bool left_out; // a JVM, and there are too many
	struct bpf_link *links[PROBES * PLACES];
	unsigned n;
};

struct request_pauses {
	struct request_probes *probes;
	void (*say)(void *context, const char *text);
	void *context;
	struct bpf_object *object; // loaded with the first JVM
	struct link_closer *closer;
	int refused;		   // why it could not be
	struct process *processes;
	unsigned n, jvms;
};

struct request_pauses *request_pauses_new(struct request_probes *probes, void (*say)(void *context, const char *text), void *context)
{
	struct request_pauses *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct request_pauses){ .probes = probes, .say = say, .context = context };
	p->processes = calloc(REQUEST_TARGETS_MAX, sizeof(*p->processes));
	p->closer = link_closer_new();
	if (p->processes && p->closer)
		return p;
	request_pauses_free(p);
	return NULL;
}

static int load(struct request_pauses *p)
{
	const void *elf;
	size_t size;
	int err;

	if (p->object || p->refused)
		return p->refused;
	elf = pauses__elf_bytes(&size);
	p->object = bpf_object__open_mem(elf, size, NULL);
	if (!p->object)
		return p->refused = -errno;
	err = bpf_map__reuse_fd(bpf_object__find_map_by_name(p->object, "pauses"), request_probes_pauses(p->probes));
	if (!err)
		err = bpf_object__load(p->object);
	if (!err)
		return 0;
	bpf_object__close(p->object);
	p->object = NULL;
	return p->refused = err;
}

static int attach_at(struct request_pauses *p, struct process *one, const char *program, const char *path, uint64_t offset)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(p->object, program);
	LIBBPF_OPTS(bpf_uprobe_opts, opts);
	struct bpf_link *link = bpf_program__attach_uprobe_opts(prog, one->pid, path, offset, &opts);

	if (!link)
		return -errno;
	one->links[one->n++] = link;
	return 0;
}

static int attach_all(struct request_pauses *p, struct process *one, const struct elf_file *f)
{
	uint64_t places[PLACES];
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	for (unsigned i = 0; i < PROBES; i++) {
		unsigned n = usdt_find(f, places_of[i].provider, places_of[i].name, places, PLACES);

		if (!n)
			return -ENOENT;
		for (unsigned k = 0; k < n; k++) {
			int err = attach_at(p, one, places_of[i].program, path, places[k]);

			if (err)
				return err;
		}
	}
	return 0;
}

static void detach(struct request_pauses *p, struct process *one)
{
	while (one->n)
		link_closer_add(p->closer, one->links[--one->n]);
}

static int see(struct request_pauses *p, struct process *one, const struct jvm *jvm)
{
	struct elf_file f;
	struct error e;
	int fd, err = load(p);

	if (err)
		return err;
	fd = jvm_open(one->pid, jvm);
	if (fd < 0)
		return fd;
	err = elf_file_open(&f, fd, &e);
	if (!err)
		err = attach_all(p, one, &f);
	elf_file_close(&f);
	if (err)
		detach(p, one);
	return err;
}

static void say_unseen(struct request_pauses *p, pid_t pid, int err)
{
	char text[200];

	if (!p->say)
		return;
	snprintf(text, sizeof(text), "requests: no gc_ms_f and safepoint_ms_f of process %d: %s", (int)pid,
		 err == -ENOENT ? "its JVM was built without probes of its own (--enable-dtrace)" : strerror(-err));
	p->say(p->context, text);
}

static int note(struct request_pauses *p, const struct process *one, enum req_jvm is)
{
	uint32_t key = (uint32_t)one->pid;
	struct req_pauses value = { .jvm = is };

	return bpf_map_update_elem(request_probes_pauses(p->probes), &key, &value, BPF_ANY);
}

static void look_at(struct request_pauses *p, struct process *one)
{
	struct jvm jvm;
	int err;

	one->looks--;
	if (jvm_find_library(one->pid, &jvm))
		return;
	one->looks = 0;
	if (p->jvms == REQ_JVMS || note(p, one, JVM_UNSEEN)) {
		one->left_out = true;
		return;
	}
	one->is = JVM_UNSEEN;
	request_probes_set_jvms(p->probes, ++p->jvms);
	err = see(p, one, &jvm);
	// What went on while its probes came one by one is not the whole of it.
	if (!err)
		err = note(p, one, JVM_SEEN);
	if (err)
		say_unseen(p, one->pid, err);
	else
		one->is = JVM_SEEN;
}

void request_pauses_add(struct request_pauses *p, pid_t pid)
{
	if (p->n == REQUEST_TARGETS_MAX)
		return;
	p->processes[p->n] = (struct process){ .pid = pid, .looks = LOOKS };
	look_at(p, &p->processes[p->n++]);
}

static void forget(struct request_pauses *p, struct process *one)
{
	uint32_t key = (uint32_t)one->pid;

	detach(p, one);
	if (one->is == JVM_NONE)
		return;
	bpf_map_delete_elem(request_probes_pauses(p->probes), &key);
	request_probes_set_jvms(p->probes, --p->jvms);
}

void request_pauses_remove(struct request_pauses *p, pid_t pid)
{
	for (unsigned i = 0; i < p->n; i++) {
		if (p->processes[i].pid != pid)
			continue;
		forget(p, &p->processes[i]);
		p->processes[i] = p->processes[--p->n];
		return;
	}
}

// A script may wait for long before it becomes a JVM.
static bool became_jvm(const struct process *one, struct jvm_quality *quality)
{
	return one->is == JVM_NONE && !one->left_out && jvm_quality_of(quality, one->pid) != JVM_STACKS_NONE;
}

void request_pauses_look(struct request_pauses *p, struct jvm_quality *quality)
{
	for (unsigned i = 0; i < p->n; i++) {
		struct process *one = &p->processes[i];

		if (!one->looks && became_jvm(one, quality))
			one->looks = 1;
		if (one->looks)
			look_at(p, one);
	}
}

unsigned request_pauses_unseen(const struct request_pauses *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->n; i++)
		n += p->processes[i].is == JVM_UNSEEN || p->processes[i].left_out;
	return n;
}

void request_pauses_free(struct request_pauses *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->n; i++)
		forget(p, &p->processes[i]);
	link_closer_free(p->closer);
	bpf_object__close(p->object);
	free(p->processes);
	free(p);
}
