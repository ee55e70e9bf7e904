// SPDX-License-Identifier: Apache-2.0
// A made-up /proc before and after a recording, and what the one line says.
#include "agent/whyempty.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "agent/filter.h"
#include "agent/io_snapshot.h"
#include "unit/agent/tree.h"

#define MIB (1ull << 20)

struct node {
	struct tree tree;
	char proc[128], line[512];
	struct io_snapshot *before, *after;
	struct whyempty_input in;
	struct filter filter;
};

static void vmstat(struct node *n, unsigned long long in_kib, unsigned long long out_kib)
{
	tree_file(&n->tree, "proc/vmstat", "nr_free_pages 1\npgpgin %llu\npgpgout %llu\npgpgoutdirect 9\n", in_kib, out_kib);
}

static void process(struct node *n, int pid, const char *comm, unsigned long long rchar, unsigned long long wchar,
		    unsigned long long read_bytes, unsigned long long write_bytes)
{
	char name[64];

	snprintf(name, sizeof(name), "proc/%d/io", pid);
	tree_file(&n->tree, name, "rchar: %llu\nwchar: %llu\nsyscr: 1\nsyscw: 1\nread_bytes: %llu\nwrite_bytes: %llu\n"
				  "cancelled_write_bytes: 0\n", rchar, wchar, read_bytes, write_bytes);
	snprintf(name, sizeof(name), "proc/%d/comm", pid);
	tree_file(&n->tree, name, "%s\n", comm);
}

static struct io_snapshot *take(struct node *n, const pid_t *pid, unsigned n_pid)
{
	const struct io_snapshot_options o = { .proc = n->proc, .pid = pid, .n_pid = n_pid };

	return io_snapshot_new(&o);
}

static int setup(void **state)
{
	struct node *n = calloc(1, sizeof(*n));

	tree_new(&n->tree);
	tree_path(&n->tree, "proc", n->proc, sizeof(n->proc));
	tree_file(&n->tree, "proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:5 / /run rw - tmpfs tmpfs rw\n");
	vmstat(n, 1000, 1000);
	process(n, 10, "db", 5 * MIB, 0, 0, 0);
	process(n, 20, "web", 7 * MIB, 2 * MIB, MIB, 0);
	n->in.backend = "tracepoint";
	*state = n;
	return 0;
}

static int teardown(void **state)
{
	struct node *n = *state;

	io_snapshot_free(n->before);
	io_snapshot_free(n->after);
	tree_free(&n->tree);
	free(n);
	return 0;
}

static void says(struct node *n, const char *line)
{
	assert_true(whyempty(&n->in, n->before, n->after, n->line, sizeof(n->line)));
	assert_string_equal(n->line, line);
}

static void not_empty(void **state)
{
	struct node *n = *state;

	n->in.ops = 1;
	assert_false(whyempty(&n->in, NULL, NULL, n->line, sizeof(n->line)));
	assert_string_equal(n->line, "");
}

static void idle(void **state)
{
	struct node *n = *state;

	n->before = take(n, NULL, 0);
	process(n, 10, "db", 5 * MIB + 100, 0, 0, 0);
	n->after = take(n, NULL, 0);
	says(n, "no I/O at all: this node's processes neither read nor wrote files");
}

static void without_snapshots(void **state)
{
	says(*state, "no block I/O on this node meanwhile");
}

static void cached(void **state)
{
	struct node *n = *state;

	n->before = take(n, NULL, 0);
	process(n, 10, "db", 15 * MIB, 0, 0, 0);
	process(n, 20, "web", 8 * MIB, 2 * MIB, MIB, 0);
	// Began meanwhile: all of it counts.
	process(n, 30, "new", 4 * MIB, 0, 0, 0);
	n->after = take(n, NULL, 0);
	says(n, "no block I/O: this node's processes read 15.00 MiB (most by db, pid 10), all of it from the page cache, pipes or sockets");
}

static void recycled_pid(void **state)
{
	struct node *n = *state;

	n->before = take(n, NULL, 0);
	process(n, 10, "next", 2 * MIB, 0, 0, 0);
	n->after = take(n, NULL, 0);
	says(n, "no block I/O: this node's processes read 2.00 MiB (most by next, pid 10), all of it from the page cache, pipes or sockets");
}

static void not_written_back(void **state)
{
	struct node *n = *state;

	n->before = take(n, NULL, 0);
	// write_bytes counts what was made dirty: it moves when the page cache takes it.
	process(n, 20, "web", 7 * MIB, 10 * MIB, MIB, 8 * MIB);
	n->after = take(n, NULL, 0);
	says(n, "no block I/O: this node's processes wrote 8.00 MiB (most by web, pid 20), which is still in the page cache or went to "
		"pipes and sockets");
}

static void filtered(void **state)
{
	struct node *n = *state;

	n->in.filter = &n->filter;
	n->filter.n_pid = 1;
	n->filter.n_device = 2;
	n->in.filtered_ops = 12345;
	says(n, "no I/O matched --pid and --device: 12,345 block I/Os of others were kept out");
	n->filter.ops = 1;
	says(n, "no I/O matched --pid, --device and --op: 12,345 block I/Os of others were kept out");
	memset(&n->filter, 0, sizeof(n->filter));
	n->in.follow = true;
	says(n, "no I/O matched the command and its descendants: 12,345 block I/Os of others were kept out");
}

// The command read only what was cached while others did real I/O: that is the reason, not the filter.
static void filtered_but_cached(void **state)
{
	struct node *n = *state;
	const pid_t pid = 10;

	n->in.follow = true;
	n->in.filtered_ops = 50;
	n->before = take(n, &pid, 1);
	process(n, 10, "db", 9 * MIB, 0, 0, 0);
	vmstat(n, 9000, 1000);
	n->after = take(n, &pid, 1);
	says(n, "no block I/O: the command read 4.00 MiB (most by db, pid 10), all of it from the page cache, pipes or sockets; 50 block "
		"I/Os of others were kept out");
}

static void unseen(void **state)
{
	struct node *n = *state;

	n->before = take(n, NULL, 0);
	vmstat(n, 3048, 1000);
	n->after = take(n, NULL, 0);
	says(n, "the kernel counted 2.00 MiB of block I/O that the tracepoint backend did not see; run `blkprof doctor`");
	// blkprof's own explains it.
	n->in.own_ops = 5;
	says(n, "no I/O at all: this node's processes neither read nor wrote files");
}

static void network(void **state)
{
	struct node *n = *state;
	const pid_t pid = 10;

	tree_file(&n->tree, "proc/10/mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n7 1 0:40 / /data rw - nfs4 server:/x rw\n"
						 "8 1 0:41 / /other rw - nfs4 server:/y rw\n");
	tree_file(&n->tree, "proc/10/fdinfo/0", "pos:\t0\nflags:\t0100002\nmnt_id:\t15\n");
	tree_file(&n->tree, "proc/10/fdinfo/3", "pos:\t0\nflags:\t0100000\nmnt_id:\t7\nino:\t5\n");
	n->in.filter = &n->filter;
	n->filter.n_pid = 1;
	n->before = take(n, &pid, 1);
	process(n, 10, "db", 25 * MIB, 0, 20 * MIB, 0);
	n->after = take(n, &pid, 1);
	says(n, "no block I/O, but the processes of --pid read 20.00 MiB through a network file system; files are open on nfs4 at /data, "
		"which does no block I/O here");
}

static void network_unknown_files(void **state)
{
	struct node *n = *state;

	tree_file(&n->tree, "proc/self/mountinfo", "2 1 0:5 / /run rw - tmpfs tmpfs rw\n7 1 0:40 / /data rw - cifs //s/x rw\n"
						   "8 1 0:41 / /s3 rw - fuse.s3fs s3fs rw\n");
	n->before = take(n, NULL, 0);
	process(n, 20, "web", 9 * MIB, 2 * MIB, 2 * MIB, 0);
	n->after = take(n, NULL, 0);
	says(n, "no block I/O, but this node's processes read 1.00 MiB through a network file system (mounted here: cifs at /data, "
		"fuse.s3fs at /s3)");
}

static void memory_and_dax(void **state)
{
	struct node *n = *state;
	const pid_t pid = 10;

	tree_file(&n->tree, "proc/10/mountinfo", "3 1 0:9 / /dev/shm rw - tmpfs tmpfs rw\n7 1 259:0 / /pmem rw - xfs /dev/pmem0 rw,dax=always\n"
						 "8 1 259:1 / /plain rw - xfs /dev/pmem1 rw,dax=never\n");
	tree_file(&n->tree, "proc/10/fdinfo/3", "mnt_id:\t3\n");
	tree_file(&n->tree, "proc/10/fdinfo/4", "mnt_id:\t7\n");
	tree_file(&n->tree, "proc/10/fdinfo/5", "mnt_id:\t8\n");
	n->in.filter = &n->filter;
	n->filter.n_pid = 1;
	n->before = take(n, &pid, 1);
	process(n, 10, "db", 25 * MIB, 0, 0, 0);
	n->after = take(n, &pid, 1);
	says(n, "no block I/O: the processes of --pid read 20.00 MiB (most by db, pid 10), all of it from the page cache, pipes or sockets; "
		"files are open on tmpfs at /dev/shm, xfs (dax) at /pmem, which does no block I/O here");
}

static void nothing_readable(void **state)
{
	struct node *n = *state;
	const pid_t gone = 4242;

	n->before = take(n, &gone, 1);
	n->after = take(n, &gone, 1);
	n->in.filter = &n->filter;
	n->filter.n_pid = 1;
	says(n, "no I/O at all: the processes of --pid neither read nor wrote files");
	io_snapshot_free(NULL);
}

static void hostile(void **state)
{
	struct node *n = *state;

	n->before = take(n, NULL, 0);
	process(n, 10, "\x1b[31m\xff evil", 900 * MIB, 0, 0, 0);
	tree_file(&n->tree, "proc/11/io", "rubbish");
	tree_file(&n->tree, "proc/12/io", "rchar: 99999999999999999999999\nwchar: -1\n");
	n->after = take(n, NULL, 0);
	assert_true(whyempty(&n->in, n->before, n->after, n->line, sizeof(n->line)));
	for (const char *p = n->line; *p; p++)
		assert_true((unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7f);
	assert_true(whyempty(&n->in, n->before, n->after, n->line, 10));
	assert_int_equal(strlen(n->line), 9);
}

// A real child that reads /dev/zero and ends: its zombie still says so.
static void this_host(void **state)
{
	struct node *n = *state;
	struct io_snapshot_options o = { .n_pid = 1 };
	siginfo_t info;
	pid_t pid;
	int go[2];

	// A zombie's file is root's.
	if (access("/proc/self/io", R_OK) || geteuid())
		skip();
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (!pid) {
		static char data[1 << 20];
		FILE *f = fopen("/dev/zero", "r");

		if (read(go[0], data, 1) != 1 || !f || fread(data, 1, sizeof(data), f) != sizeof(data))
			_exit(1);
		_exit(0);
	}
	o.pid = &pid;
	n->before = io_snapshot_new(&o);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	n->after = io_snapshot_new(&o);
	waitpid(pid, NULL, 0);
	assert_int_equal(n->after->n, 1);
	assert_true(n->after->process[0].rchar - n->before->process[0].rchar >= 1 << 20);
	n->in.follow = true;
	assert_true(whyempty(&n->in, n->before, n->after, n->line, sizeof(n->line)));
	assert_non_null(strstr(n->line, "the command read 1."));
	io_snapshot_free(n->after);
	n->after = io_snapshot_new(NULL);
	assert_true(n->after->vmstat);
	assert_true(n->after->n > 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(not_empty), T(idle), T(without_snapshots), T(cached), T(recycled_pid), T(not_written_back), T(filtered),
		T(filtered_but_cached), T(unseen), T(network), T(network_unknown_files), T(memory_and_dax), T(nothing_readable),
		T(hostile), T(this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
