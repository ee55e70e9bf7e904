// SPDX-License-Identifier: Apache-2.0
#include "agent/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cgroup.h"
#include "bpf/record_rec.h"
#include "common/file.h"
#include "common/text.h"

#define PID_LIMIT 4194304 // the kernel's PID_MAX_LIMIT
#define COMM_BYTES 15	  // TASK_COMM_LEN less its NUL

static const char *const op_names[OP_CLASSES] = {
	[OP_READ] = "read",	  [OP_WRITE] = "write",		      [OP_FLUSH] = "flush",
	[OP_DISCARD] = "discard", [OP_WRITE_ZEROES] = "write_zeroes", [OP_OTHER] = "other",
};

const char *filter_op_name(unsigned op)
{
	return op < OP_CLASSES ? op_names[op] : "unknown";
}

// Calls `each` for each item of a comma-separated list.
static int each_item(const char *list, int (*each)(const char *item, struct filter *f, struct error *e), const char *what,
		     struct filter *f, struct error *e)
{
	char copy[512], *save = NULL;
	int err = 0;

	if (!*list || strlen(list) >= sizeof(copy))
		return error_set(e, -EINVAL, "%s: '%.60s' is empty or too long a list", what, list);
	snprintf(copy, sizeof(copy), "%s", list);
	for (char *item = copy; item && !err; item = save) {
		save = strchr(item, ',');
		if (save)
			*save++ = 0;
		err = each(item, f, e);
	}
	return err;
}

static int add_op(const char *item, struct filter *f, struct error *e)
{
	for (unsigned op = 0; op < OP_CLASSES; op++) {
		if (strcmp(item, op_names[op]))
			continue;
		f->ops |= 1u << op;
		return 0;
	}
	return error_set(e, -EINVAL, "--op: there is no operation '%.60s'; there are read, write, flush, discard, write_zeroes "
			 "and other", item);
}

// The process that a task belongs to, and its name; -ENOENT when there is none.
static int read_status(uint64_t tid, uint64_t *ret_tgid, char *comm, size_t cap)
{
	char path[40];
	struct buf b = { 0 };
	const char *name, *tgid;
	int err;

	snprintf(path, sizeof(path), "/proc/%llu/status", (unsigned long long)tid);
	err = file_read(path, 65536, &b);
	if (!err) {
		name = !strncmp((char *)b.data, "Name:\t", 6) ? (char *)b.data + 6 : "";
		text_sanitize(comm, cap, name, strcspn(name, "\n"));
		tgid = strstr((char *)b.data, "\nTgid:\t");
		*ret_tgid = tgid ? strtoull(tgid + 7, NULL, 10) : tid;
	}
	buf_free(&b);
	return err;
}

static int add_pid(const char *item, struct filter *f, struct error *e)
{
	uint64_t pid, tgid = 0;
	char comm[64];
	int err = text_number(item, 1, PID_LIMIT, "--pid", &pid, e);

	if (err)
		return err;
	err = read_status(pid, &tgid, comm, sizeof(comm));
	if (err == -ENOENT || err == -ESRCH)
		return error_set(e, -ENOENT, "--pid: there is no process %llu", (unsigned long long)pid);
	if (err)
		return error_set(e, err, "--pid: cannot read /proc/%llu: %s", (unsigned long long)pid, strerror(-err));
	if (tgid != pid)
		return error_set(e, -EINVAL, "--pid: %llu is the thread '%s' of process %llu; use --pid %llu, or --comm for one pool "
				 "of its threads", (unsigned long long)pid, comm, (unsigned long long)tgid, (unsigned long long)tgid);
	for (unsigned i = 0; i < f->n_pid; i++)
		if (f->pid[i] == (pid_t)pid)
			return 0;
	if (f->n_pid == FILTER_MAX)
		return error_set(e, -E2BIG, "--pid: at most %d processes", FILTER_MAX);
	f->pid[f->n_pid++] = (pid_t)pid;
	return 0;
}

static int add_comm(const char *option, const char *name, char to[FILTER_MAX][16], unsigned *n, struct error *e)
{
	size_t len = strlen(name);

	if (!len)
		return error_set(e, -EINVAL, "%s: the name is empty", option);
	if (len > COMM_BYTES)
		return error_set(e, -EINVAL, "%s: the kernel keeps %d bytes of a name; use '%.*s'", option, COMM_BYTES, COMM_BYTES, name);
	for (unsigned i = 0; i < *n; i++)
		if (!strcmp(to[i], name))
			return 0;
	// The BPF side compares all 16 bytes: what follows the name is 0.
	memset(to[*n], 0, sizeof(to[0]));
	memcpy(to[(*n)++], name, len);
	return 0;
}

static int add_cgroup(const char *name, bool exclude, struct filter *f, struct error *e)
{
	struct cgroup_id found;
	int err = cgroup_find(NULL, name, &found, e);

	if (err)
		return err;
	if (f->n_cgroup == FILTER_MAX)
		return error_set(e, -E2BIG, "more than %d cgroups", FILTER_MAX);
	f->cgroup[f->n_cgroup] = found.id;
	f->cgroup_v1[f->n_cgroup] = found.v1;
	f->cgroup_exclude[f->n_cgroup] = exclude;
	memcpy(f->controller[f->n_cgroup], found.controller, sizeof(found.controller));
	f->n_cgroup++;
	f->n_exclude_cgroup += exclude;
	return 0;
}

static bool names_cgroup(const char *name)
{
	static const char *const ends[] = { ".service", ".slice", ".scope" };
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (len > strlen(ends[i]) && !strcmp(name + len - strlen(ends[i]), ends[i]))
			return true;
	return *name == '/';
}

// A cgroup that is not there has nothing to keep out.
static int add_exclude(const char *name, struct filter *f, struct error *e)
{
	int err;

	if (!names_cgroup(name))
		return add_comm("exclude", name, f->exclude_comm, &f->n_exclude_comm, e);
	err = add_cgroup(name, true, f, e);
	f->n_exclude_missing += err == -ENOENT;
	return err == -ENOENT ? 0 : err;
}

static int add_device(const char *name, const struct devices *devices, struct filter *f, struct error *e)
{
	uint32_t found[FILTER_DEVICES_MAX];
	int n = devices ? devices_select(devices, name, found, FILTER_DEVICES_MAX, e)
			: error_set(e, -ENOENT, "--device %.100s: the devices of this node could not be read", name);

	for (int i = 0; i < n; i++) {
		unsigned j = 0;

		while (j < f->n_device && f->device[j] != found[i])
			j++;
		if (j < f->n_device)
			continue;
		if (f->n_device == FILTER_DEVICES_MAX)
			return error_set(e, -E2BIG, "--device: more than %d devices with all that is stacked above; name fewer",
					 FILTER_DEVICES_MAX);
		f->device[f->n_device++] = found[i];
	}
	return n < 0 ? n : 0;
}

static int too_many(const struct filter_options *o, struct error *e)
{
	if (o->n_pid <= FILTER_MAX && o->n_comm <= FILTER_MAX && o->n_cgroup <= FILTER_MAX && o->n_device <= FILTER_MAX &&
	    o->n_op <= FILTER_MAX && o->n_exclude <= FILTER_MAX)
		return 0;
	return error_set(e, -E2BIG, "more than %d filters of one kind", FILTER_MAX);
}

int filter_resolve(const struct filter_options *options, const struct devices *devices, struct filter *ret, struct error *e)
{
	const struct filter_options *o = options;
	struct filter f;
	int err = too_many(o, e);

	memset(&f, 0, sizeof(f));
	for (unsigned i = 0; i < o->n_op && !err; i++)
		err = each_item(o->op[i], add_op, "--op", &f, e);
	for (unsigned i = 0; i < o->n_pid && !err; i++)
		err = each_item(o->pid[i], add_pid, "--pid", &f, e);
	for (unsigned i = 0; i < o->n_comm && !err; i++)
		err = add_comm("--comm", o->comm[i], f.comm, &f.n_comm, e);
	for (unsigned i = 0; i < o->n_cgroup && !err; i++)
		err = add_cgroup(o->cgroup[i], false, &f, e);
	for (unsigned i = 0; i < o->n_exclude && !err; i++)
		err = add_exclude(o->exclude[i], &f, e);
	for (unsigned i = 0; i < o->n_device && !err; i++)
		err = add_device(o->device[i], devices, &f, e);
	if (!err)
		*ret = f;
	return err;
}
