// SPDX-License-Identifier: Apache-2.0
#include "walker.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "kernel_walk.h"
#include "unwind/unwind.h"

#define FILES_MAX 64

struct file {
	char path[256];
	uint64_t start, end, offset; // the executable mapping
	uint64_t address;	     // of its first byte, in the file's own addresses
	bool known;
	struct unwind_table *table;
};

struct walker {
	pid_t pid;
	unsigned n;
	struct file files[FILES_MAX];
	struct kernel_walk *kernel; // NULL until it is asked
};

// Of the vDSO there is no file: its image is read from the process.
static int open_file(const struct walker *w, const struct file *f)
{
	char *image;
	int fd;

	if (f->path[0] == '/')
		return open(f->path, O_RDONLY | O_CLOEXEC);
	if (strcmp(f->path, "[vdso]"))
		return -1;
	image = malloc(f->end - f->start);
	fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	if (!image || fd < 0 || !walker_read(w, f->start, image, f->end - f->start) ||
	    write(fd, image, f->end - f->start) != (ssize_t)(f->end - f->start))
		exit(2);
	free(image);
	return fd;
}

static void read_maps(struct walker *w)
{
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)w->pid);
	f = fopen(path, "re");
	while (f && w->n < FILES_MAX && fgets(line, sizeof(line), f)) {
		struct file *m = &w->files[w->n];
		char flags[8];

		memset(m, 0, sizeof(*m));
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %255[^\n]", &m->start, &m->end, flags,
			   &m->offset, m->path) >= 4 &&
		    flags[2] == 'x')
			w->n++;
	}
	if (f)
		fclose(f);
}

static void load(const struct walker *w, struct file *f)
{
	struct error e = { "" };
	struct elf_file elf;
	int fd = open_file(w, f);

	f->known = true;
	if (fd < 0)
		return;
	if (unwind_compile(fd, NULL, &f->table, &e) && !strstr(e.text, "neither") && !strstr(e.text, "Go"))
		fprintf(stderr, "%s: %s\n", f->path, e.text);
	if (elf_file_open(&elf, fd, &e) || !elf_file_address(&elf, f->offset, &f->address)) {
		unwind_table_free(f->table);
		f->table = NULL;
	}
	elf_file_close(&elf);
}

static void forget(struct walker *w)
{
	for (unsigned i = 0; i < w->n; i++)
		unwind_table_free(w->files[i].table);
	w->n = 0;
	if (w->kernel)
		kernel_walk_free(w->kernel);
	w->kernel = NULL;
}

static struct file *file_at(struct walker *w, uint64_t address)
{
	for (int again = 0; again < 2; again++) {
		for (unsigned i = 0; i < w->n; i++) {
			struct file *f = &w->files[i];

			if (address < f->start || address >= f->end)
				continue;
			if (!f->known)
				load(w, f);
			return f;
		}
		if (!again) { // it may be mapped since
			forget(w);
			read_maps(w);
		}
	}
	return NULL;
}

struct walker *walker_new(pid_t pid)
{
	struct walker *w = calloc(1, sizeof(*w));

	if (!w)
		exit(2);
	w->pid = pid;
	read_maps(w);
	return w;
}

void walker_free(struct walker *w)
{
	forget(w);
	free(w);
}

bool walker_read(const struct walker *w, uint64_t address, void *out, size_t len)
{
	struct iovec to = { out, len }, from = { (void *)(uintptr_t)address, len };

	return process_vm_readv(w->pid, &to, 1, &from, 1, 0) == (ssize_t)len;
}

static const struct unwind_rule *rule_at(struct walker *w, uint64_t address, bool *ret_table)
{
	static const struct unwind_rule none;
	struct file *f = file_at(w, address);

	*ret_table = f && f->table;
	return *ret_table ? unwind_find(f->table, address - f->start + f->address) : &none;
}

void walker_name(struct walker *w, uint64_t address, char *out, size_t cap)
{
	struct file *f = file_at(w, address);

	snprintf(out, cap, "%s+0x%" PRIx64, f ? f->path : "?", f ? address - f->start + f->address : address);
}

struct step {
	struct registers r;
	bool rbp_lost;
	enum walk_end end; // when there is no next frame
};

static bool word(struct walker *w, struct step *s, uint64_t address, uint64_t *ret)
{
	if (walker_read(w, address, ret, 8))
		return true;
	s->end = WALK_UNREADABLE;
	return false;
}

static bool cfa_of(struct walker *w, struct step *s, const struct unwind_rule *rule, uint64_t *ret)
{
	uint64_t base = s->r.rsp;

	if (rule->cfa == UNWIND_CFA_RBP || rule->cfa == UNWIND_CFA_DEREF_RBP) {
		base = s->r.rbp;
		if (s->rbp_lost) {
			s->end = WALK_LOST;
			return false;
		}
	}
	*ret = base + (uint64_t)(int64_t)rule->cfa_offset;
	if (rule->cfa == UNWIND_CFA_PLT)
		*ret = base + 8 + ((s->r.rip & 15) >= (uint64_t)rule->cfa_offset ? 8 : 0);
	if (rule->cfa == UNWIND_CFA_DEREF_RBP || rule->cfa == UNWIND_CFA_DEREF_RSP) {
		if (!word(w, s, *ret, ret))
			return false;
		*ret += (uint64_t)(int64_t)rule->cfa_add;
	}
	return true;
}

static bool leave_signal(struct walker *w, struct step *s, const struct unwind_rule *rule)
{
	uint64_t context = s->r.rsp + (uint64_t)(int64_t)rule->cfa_offset;

	s->rbp_lost = false;
	return word(w, s, context + 168, &s->r.rip) && word(w, s, context + 120, &s->r.rbp) &&
	       word(w, s, context + 160, &s->r.rsp);
}

static bool restore_rbp(struct walker *w, struct step *s, const struct unwind_rule *rule, uint64_t cfa)
{
	uint64_t offset = (uint64_t)(int64_t)rule->rbp_offset;

	switch (rule->rbp) {
	case UNWIND_RBP_SAME:
		return true;
	case UNWIND_RBP_UNKNOWN:
		s->rbp_lost = true;
		return true;
	case UNWIND_RBP_FRAME:
		if (s->rbp_lost)
			return true;
		return word(w, s, s->r.rbp + offset, &s->r.rbp);
	default:
		s->rbp_lost = false;
		return word(w, s, cfa + offset, &s->r.rbp);
	}
}

// `exact`: rip is where the function stands, not where a call returns to. Becomes true behind a signal frame.
static bool step(struct walker *w, struct step *s, bool *exact)
{
	bool table;
	const struct unwind_rule *rule = rule_at(w, s->r.rip - !*exact, &table);
	uint64_t cfa;

	*exact = rule->cfa == UNWIND_CFA_SIGNAL;
	switch (rule->cfa) {
	case UNWIND_CFA_NONE:
		s->end = table ? WALK_NO_RULE : WALK_NO_TABLE;
		return false;
	case UNWIND_CFA_END:
		s->end = WALK_END;
		return false;
	case UNWIND_CFA_SIGNAL:
		return leave_signal(w, s, rule);
	default:
		if (!cfa_of(w, s, rule, &cfa) || !word(w, s, cfa - 8, &s->r.rip) || !restore_rbp(w, s, rule, cfa))
			return false;
		s->r.rsp = cfa;
		return true;
	}
}

void walker_walk(struct walker *w, struct registers at, struct walk *ret)
{
	struct step s = { .r = at };
	bool exact = true;

	ret->n = 0;
	ret->end = WALK_TOO_LONG;
	while (ret->n < WALK_MAX) {
		ret->last = s.r.rip;
		if (!step(w, &s, &exact)) {
			ret->end = s.end;
			return;
		}
		ret->address[ret->n++] = s.r.rip;
	}
}

void walker_walk_as_kernel(struct walker *w, struct registers at, struct walk *ret)
{
	if (!w->kernel) {
		w->kernel = kernel_walk_new(w);
		for (unsigned i = 0; i < w->n; i++) {
			struct file *f = &w->files[i];

			if (!f->known)
				load(w, f);
			kernel_walk_map(w->kernel, f->start, f->end, f->address, f->table);
		}
	}
	kernel_walk_walk(w->kernel, at, ret);
}
