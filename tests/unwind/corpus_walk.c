// SPDX-License-Identifier: Apache-2.0
// corpus_walk PROGRAM [steps|musl]: runs a program of the corpus, walks its stack at every stop, from the registers that it
// tells and from those in its system call, here and by the kernel side's own code, and compares with the truth. With "steps"
// it also follows the program from its first stop to its second, instruction by instruction, and keeps a stack of return
// addresses of its own, which each walk must give. With "musl" a walk may end in libc.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "walker.h"

#define STEPS_MAX 60000
#define SHOWN_MAX 5

struct told {
	char name[64];
	pid_t tid;
	struct registers r;
	unsigned n;
	uint64_t truth[256]; // 0: any number of frames
};

static bool without_rules; // libc has no call frame information
static unsigned failures, stops, frames, steps_done, steps_unknown;

static void fail(struct walker *w, const char *name, const char *what, const struct walk *k, const uint64_t *truth, unsigned n)
{
	static const char *const ends[] = { "at the outermost frame", "where there is no table", "where there is no rule",
					    "at unreadable memory", "for want of rbp", "after too many frames" };
	char text[300];

	if (failures++ >= SHOWN_MAX)
		return;
	walker_name(w, k->last, text, sizeof(text));
	printf("%s, %s: %u frames, ended %s (%s)\n", name, what, k->n, ends[k->end], text);
	for (unsigned i = 0; i < k->n && i < 40; i++) {
		walker_name(w, k->address[i], text, sizeof(text));
		printf("  walked %-60s %s\n", text, i < n && truth[i] == k->address[i] ? "=" : "");
	}
	for (unsigned i = 0; i < n && i < 40; i++) {
		if (truth[i])
			walker_name(w, truth[i], text, sizeof(text));
		printf("  truth  %s\n", truth[i] ? text : "…");
	}
}

// The truth from its beginning, with gaps; what the walk has beyond it is libc's start of the program.
static bool agrees(const uint64_t *address, unsigned n, const uint64_t *truth, unsigned m, bool may_end)
{
	for (; m && truth[0]; address++, n--, truth++, m--)
		if (!n || *address != *truth)
			return false;
	if (!m)
		return true;
	for (truth++, m--; n; address++, n--)
		if (agrees(address, n, truth, m, may_end))
			return true;
	return may_end;
}

// Where this walk ends for want of rules, the kernel side goes on by frame pointer.
static void compare_with_kernel(struct walker *w, const char *name, struct registers at, const struct walk *k)
{
	struct walk kernel;

	walker_walk_as_kernel(w, at, &kernel);
	if (kernel.n < k->n || memcmp(kernel.address, k->address, k->n * sizeof(*k->address)) ||
	    (k->end == WALK_END && (kernel.end != WALK_END || kernel.n != k->n)))
		fail(w, name, "as the kernel side walks", &kernel, k->address, k->n);
}

static void check(struct walker *w, const struct told *t, const struct walk *k, const char *what, const uint64_t *truth, unsigned n)
{
	bool cut = without_rules && (k->end == WALK_NO_TABLE || k->end == WALK_NO_RULE);

	frames += k->n;
	if (!agrees(k->address, k->n, truth, n, cut) || (k->end != WALK_END && !cut))
		fail(w, t->name, what, k, truth, n);
}

static bool parse(char *line, struct told *t)
{
	char *at = strchr(line, ' ');
	int used;

	memset(t, 0, sizeof(*t));
	if (!at || sscanf(line, "%63s", t->name) != 1 ||
	    sscanf(at, " %d %" SCNx64 " %" SCNx64 " %" SCNx64 "%n", &t->tid, &t->r.rip, &t->r.rsp, &t->r.rbp, &used) != 4)
		return false;
	for (at += used; t->n < 256 && sscanf(at, " %" SCNx64 "%n", &t->truth[t->n], &used) == 1; at += used)
		t->n++;
	return t->n > 0;
}

static bool attach(pid_t tid)
{
	int status;

	return !ptrace(PTRACE_SEIZE, tid, 0, 0) && !ptrace(PTRACE_INTERRUPT, tid, 0, 0) &&
	       waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status);
}

static struct registers registers_of(pid_t tid)
{
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, tid, 0, &r)) {
		perror("ptrace");
		exit(2);
	}
	return (struct registers){ r.rip, r.rsp, r.rbp };
}

// In read(2), below stop(): some frames of libc before.
static void walk_in_system_call(struct walker *w, const struct told *t)
{
	uint64_t truth[257] = { 0 };
	struct registers r = registers_of(t->tid);
	struct walk k;

	walker_walk(w, r, &k);
	compare_with_kernel(w, t->name, r, &k);
	memcpy(truth + 1, t->truth, t->n * sizeof(*truth));
	check(w, t, &k, "in its system call", truth, t->n + 1);
}

struct shadow {
	uint64_t address[WALK_MAX]; // the outermost first
	unsigned n;
};

// A call leaves the address behind it on the stack; a return takes one off.
static void follow(const struct walker *w, struct shadow *s, const struct registers *from, const struct registers *to)
{
	uint8_t op[2] = { 0 };
	uint64_t top = 0;

	walker_read(w, from->rip, op, 2);
	if (to->rsp == from->rsp - 8 && walker_read(w, to->rsp, &top, 8) && top > from->rip && top <= from->rip + 15 &&
	    to->rip != top && s->n < WALK_MAX)
		s->address[s->n++] = top;
	else if (s->n && to->rsp == from->rsp + 8 && (op[0] == 0xc3 || (op[0] == 0xf3 && op[1] == 0xc3)))
		s->n--;
}

static void compare_step(struct walker *w, const struct shadow *s, const struct registers *r)
{
	uint64_t truth[WALK_MAX];
	struct walk k;

	walker_walk(w, *r, &k);
	compare_with_kernel(w, "step", *r, &k);
	steps_done++;
	if (k.end == WALK_NO_RULE || k.end == WALK_NO_TABLE) {
		steps_unknown++;
		return;
	}
	for (unsigned i = 0; i < s->n; i++)
		truth[i] = s->address[s->n - 1 - i];
	if (k.end != WALK_END || k.n != s->n || memcmp(truth, k.address, s->n * sizeof(*truth))) {
		char text[300];

		walker_name(w, r->rip, text, sizeof(text));
		fail(w, text, "step", &k, truth, s->n);
	}
}

static bool writes(const struct walker *w, pid_t tid)
{
	struct user_regs_struct r;
	uint8_t op[2] = { 0 };

	return !ptrace(PTRACE_GETREGS, tid, 0, &r) && walker_read(w, r.rip, op, 2) && op[0] == 0x0f && op[1] == 0x05 &&
	       r.rax == SYS_write;
}

// From the stop in read(2), whose byte is there already, up to the next write(2).
static void follow_steps(struct walker *w, const struct told *t)
{
	struct registers r = registers_of(t->tid), next;
	struct shadow s = { .n = 0 };
	struct walk k;
	int status;

	walker_walk(w, r, &k);
	for (unsigned i = 0; i < k.n; i++)
		s.address[s.n++] = k.address[k.n - 1 - i];
	for (unsigned i = 0; i < STEPS_MAX && failures < SHOWN_MAX && !writes(w, t->tid); i++) {
		if (ptrace(PTRACE_SINGLESTEP, t->tid, 0, 0) || waitpid(t->tid, &status, __WALL) != t->tid || !WIFSTOPPED(status))
			return;
		next = registers_of(t->tid);
		follow(w, &s, &r, &next);
		if (next.rip != r.rip)
			compare_step(w, &s, &next);
		r = next;
	}
}

static void at_stop(pid_t pid, const struct told *t, bool steps, int to)
{
	struct walker *w = walker_new(pid);
	struct walk k;

	stops++;
	if (!attach(t->tid)) {
		printf("%s: cannot attach: %s\n", t->name, strerror(errno));
		failures++;
	} else {
		walker_walk(w, t->r, &k);
		compare_with_kernel(w, t->name, t->r, &k);
		check(w, t, &k, "from its own registers", t->truth, t->n);
		walk_in_system_call(w, t);
	}
	if (write(to, "x", 1) != 1)
		exit(2);
	if (steps)
		follow_steps(w, t);
	ptrace(PTRACE_DETACH, t->tid, 0, 0);
	walker_free(w);
}

static pid_t start(char *program, int *ret_in, int *ret_out)
{
	int in[2], out[2];
	pid_t pid;

	if (pipe(in) || pipe(out))
		exit(2);
	pid = fork();
	if (!pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execl(program, program, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	*ret_in = in[1];
	*ret_out = out[0];
	return pid;
}

int main(int argc, char **argv)
{
	bool steps = argc == 3 && !strcmp(argv[2], "steps");
	int in, out, status;
	char line[8192];
	struct told t;
	pid_t pid;
	FILE *f;

	if (argc < 2)
		return fprintf(stderr, "usage: corpus_walk PROGRAM [steps|musl]\n"), 2;
	without_rules = argc == 3 && !strcmp(argv[2], "musl");
	pid = start(argv[1], &in, &out);
	f = fdopen(out, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (!parse(line, &t)) {
			printf("not understood: %s", line);
			return 1;
		}
		at_stop(pid, &t, steps && !stops, in);
	}
	waitpid(pid, &status, 0);
	printf("%u stops, %u frames, %u steps, %u of them without a rule, %u differ\n", stops, frames, steps_done, steps_unknown, failures);
	if (!stops || !WIFEXITED(status) || WEXITSTATUS(status)) {
		printf("the program ended with status 0x%x\n", status);
		return 1;
	}
	return failures > 0;
}
