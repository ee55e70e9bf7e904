// SPDX-License-Identifier: Apache-2.0
#include "agent/request_targets.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/procs_maps.h"
#include "common/buf.h"
#include "common/file.h"
#include "common/text.h"

#define CMDLINE_MAX 65536
#define ANCESTORS_MAX 32

struct target {
	pid_t pid;
	uint64_t start; // clock ticks since boot: a pid is used again
	bool seen;
};

struct request_targets {
	struct request_rules rules;
	pid_t pids[REQUEST_RULES_MAX];
	pid_t ancestors[ANCESTORS_MAX]; // of ours, we first
	unsigned n_ancestors;
	char proc[200];
	struct target all[REQUEST_TARGETS_MAX];
	unsigned n, left_out;
};

static int read_of(const struct request_targets *t, pid_t pid, const char *name, struct buf *ret)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%d/%s", t->proc, (int)pid, name);
	return file_read(path, CMDLINE_MAX, ret);
}

// A pattern without a wildcard is looked for anywhere in the text.
static bool text_matches(const char *pattern, const char *text, bool anywhere)
{
	if (strpbrk(pattern, "*?["))
		return !fnmatch(pattern, text, 0);
	return anywhere ? strstr(text, pattern) != NULL : !strcmp(pattern, text);
}

static bool any_matches(const char *const *patterns, unsigned n, const char *text, bool anywhere)
{
	for (unsigned i = 0; i < n; i++)
		if (text_matches(patterns[i], text, anywhere))
			return true;
	return false;
}

static bool by_comm(const struct request_targets *t, pid_t pid)
{
	char path[300], comm[64];

	snprintf(path, sizeof(path), "%s/%d/comm", t->proc, (int)pid);
	return !file_read_line(path, comm, sizeof(comm)) && any_matches(t->rules.comm, t->rules.n_comm, comm, false);
}

static bool by_cmdline(const struct request_targets *t, pid_t pid)
{
	struct buf b = { 0 };
	bool matches = false;

	if (!read_of(t, pid, "cmdline", &b) && b.len) {
		for (size_t i = 0; i + 1 < b.len; i++)
			if (!b.data[i])
				b.data[i] = ' ';
		buf_byte(&b, 0);
		matches = !b.error && any_matches(t->rules.cmdline, t->rules.n_cmdline, (char *)b.data, true);
	}
	buf_free(&b);
	return matches;
}

// The group itself or one below; with or without where it is mounted in front.
static bool is_below(const char *group, const char *wanted)
{
	static const char mounted[] = "/sys/fs/cgroup/";
	size_t len;

	if (!strncmp(wanted, mounted, sizeof(mounted) - 1)) {
		wanted += sizeof(mounted) - 1;
		if (is_below(group, wanted))
			return true;
		wanted += strcspn(wanted, "/"); // a controller's name
	}
	wanted += strspn(wanted, "/");
	group += strspn(group, "/");
	len = strlen(wanted);
	while (len && wanted[len - 1] == '/')
		len--;
	return len && !strncmp(group, wanted, len) && (!group[len] || group[len] == '/');
}

static bool by_cgroup(const struct request_targets *t, pid_t pid)
{
	struct buf b = { 0 };
	bool matches = false;
	char *save = NULL;

	if (read_of(t, pid, "cgroup", &b))
		return false;
	buf_byte(&b, 0);
	for (char *line = b.error ? NULL : strtok_r((char *)b.data, "\n", &save); line && !matches; line = strtok_r(NULL, "\n", &save)) {
		const char *group = strchr(line, ':');

		group = group ? strchr(group + 1, ':') : NULL;
		for (unsigned i = 0; group && i < t->rules.n_cgroup; i++)
			matches |= is_below(group + 1, t->rules.cgroup[i]);
	}
	buf_free(&b);
	return matches;
}

static bool read_stat(const struct request_targets *t, pid_t pid, struct procs_stat *ret)
{
	struct buf b = { 0 };
	bool read = !read_of(t, pid, "stat", &b) && !procs_stat_parse((char *)b.data, b.len, ret);

	buf_free(&b);
	return read;
}

// A shell, sudo or timeout that runs us has our own arguments in its command line.
static void find_ancestors(struct request_targets *t)
{
	struct procs_stat stat;

	for (pid_t pid = getpid(); t->n_ancestors < ANCESTORS_MAX && pid > 0; pid = stat.ppid) {
		t->ancestors[t->n_ancestors++] = pid;
		if (!read_stat(t, pid, &stat))
			return;
	}
}

int request_targets_new(const struct request_rules *rules, const char *proc, struct request_targets **ret, struct error *e)
{
	struct request_targets *t = calloc(1, sizeof(*t));
	uint64_t pid;

	if (!t)
		return error_set(e, -ENOMEM, "requests: no memory");
	t->rules = *rules;
	snprintf(t->proc, sizeof(t->proc), "%s", proc ? proc : "/proc");
	for (unsigned i = 0; i < rules->n_pid; i++) {
		if (text_number(rules->pid[i], 1, 1 << 22, "a process id", &pid, e)) {
			free(t);
			return -EINVAL;
		}
		t->pids[i] = (pid_t)pid;
	}
	find_ancestors(t);
	*ret = t;
	return 0;
}

void request_targets_free(struct request_targets *t)
{
	free(t);
}

static bool runs_us(const struct request_targets *t, pid_t pid)
{
	for (unsigned i = 0; i < t->n_ancestors; i++)
		if (t->ancestors[i] == pid)
			return true;
	return false;
}

static bool wanted(const struct request_targets *t, pid_t pid)
{
	if (pid == getpid())
		return false;
	for (unsigned i = 0; i < t->rules.n_pid; i++)
		if (t->pids[i] == pid)
			return true;
	return (t->rules.n_comm && by_comm(t, pid)) || (t->rules.n_cmdline && !runs_us(t, pid) && by_cmdline(t, pid)) ||
	       (t->rules.n_cgroup && by_cgroup(t, pid));
}

static struct target *find(struct request_targets *t, pid_t pid)
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->all[i].pid == pid)
			return &t->all[i];
	return NULL;
}

static void look_at(struct request_targets *t, pid_t pid, request_target_fn fn, void *context)
{
	struct procs_stat stat;
	struct target *one;

	if (!wanted(t, pid) || !read_stat(t, pid, &stat))
		return;
	one = find(t, pid);
	if (one && one->start == stat.starttime) {
		one->seen = true;
		return;
	}
	if (one) {
		fn(context, pid, false);
	} else if (t->n == REQUEST_TARGETS_MAX) {
		t->left_out++;
		return;
	} else {
		one = &t->all[t->n++];
	}
	*one = (struct target){ .pid = pid, .start = stat.starttime, .seen = true };
	fn(context, pid, true);
}

static void look_at_all(struct request_targets *t, request_target_fn fn, void *context)
{
	DIR *d = opendir(t->proc);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (isdigit((unsigned char)entry->d_name[0]))
			look_at(t, (pid_t)strtol(entry->d_name, NULL, 10), fn, context);
	if (d)
		closedir(d);
}

void request_targets_scan(struct request_targets *t, request_target_fn fn, void *context)
{
	const struct request_rules *r = &t->rules;

	t->left_out = 0;
	for (unsigned i = 0; i < t->n; i++)
		t->all[i].seen = false;
	if (r->n_comm || r->n_cmdline || r->n_cgroup)
		look_at_all(t, fn, context);
	else
		for (unsigned i = 0; i < r->n_pid; i++)
			look_at(t, t->pids[i], fn, context);
	for (unsigned i = 0; i < t->n;) {
		if (t->all[i].seen) {
			i++;
			continue;
		}
		fn(context, t->all[i].pid, false);
		t->all[i] = t->all[--t->n];
	}
}

bool request_targets_has(const struct request_targets *t, pid_t pid)
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->all[i].pid == pid)
			return true;
	return false;
}

unsigned request_targets_count(const struct request_targets *t)
{
	return t->n;
}

unsigned request_targets_left_out(const struct request_targets *t)
{
	return t->left_out;
}
