// SPDX-License-Identifier: Apache-2.0
#include "agent/probes.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "fentry.skel.h"
#include "kprobe.skel.h"
#include "timeline.skel.h"
#include "timeline_raw.skel.h"
#include "tracepoint.skel.h"
#include "tracepoint_raw.skel.h"

#define PROGRAMS_MAX 16
#define KERNEL_BTF "/sys/kernel/btf/vmlinux"
#define PERF_SOURCES "/sys/bus/event_source/devices"

struct probes {
	struct bpf_object *object;
	struct bpf_link *links[PROGRAMS_MAX];
	struct bpf_program *programs[PROGRAMS_MAX];
	unsigned n_programs;
	struct bpf_link **cpu_links;
	int n_cpus;
	struct record_state *state;
	uint32_t tick_hz;
	uint32_t target;
	char note[200];
};

#define HOOKS_MAX 3

// A backend in one of its forms. The programs of "follow" are loaded only when a command is followed.
struct form {
	enum backend backend;
	const void *(*elf)(size_t *size);
	const char *hooks[HOOKS_MAX];
	const char *functions[HOOKS_MAX]; // attached to all of them by one kprobe.multi link each
	const char *instead_of;		  // a better form of the backend, tried before this one
	bool timeline;			  // with the programs of timeline_hooks
};

// Best first.
static const struct form forms[] = {
	{ BACKEND_FENTRY, fentry__elf_bytes, .hooks = { "on_submit_bio", "on_bio_endio" } },
	{ BACKEND_KPROBE, kprobe__elf_bytes, .hooks = { "on_submit_bio", "on_bio_endio" },
	  .functions = { "submit_bio", "bio_endio" } },
	{ BACKEND_KPROBE, kprobe__elf_bytes, .hooks = { "on_submit_bio", "on_bio_endio" }, .instead_of = "kprobe.multi" },
	{ BACKEND_TRACEPOINT, tracepoint__elf_bytes, .hooks = { "on_bio_queue", "on_bio_complete", "on_rq_complete" } },
	{ BACKEND_TRACEPOINT, tracepoint_raw__elf_bytes, .hooks = { "on_bio_queue", "on_bio_complete", "on_rq_complete" },
	  .instead_of = "typed tracepoints" },
	{ BACKEND_TRACEPOINT, timeline__elf_bytes, .hooks = { "on_bio_queue", "on_bio_complete", "on_rq_complete" },
	  .timeline = true },
	{ BACKEND_TRACEPOINT, timeline_raw__elf_bytes, .hooks = { "on_bio_queue", "on_bio_complete", "on_rq_complete" },
	  .timeline = true, .instead_of = "typed tracepoints" },
};
static const char *const timeline_hooks[] = { "on_rq_issue", "on_switch", "on_waking", "on_new", "on_rename", "on_exec" };
static const char *const follow_hooks[] = { "on_fork", "on_exit" };
static const char *const test_run[] = { "read_jiffies", "check_bio" }; // run by us, attached to nothing

struct bpf_map *probes_map(struct probes *p, const char *name)
{
	return bpf_object__find_map_by_name(p->object, name);
}

struct record_state *probes_state(struct probes *p)
{
	return p->state;
}

uint32_t probes_tick_hz(const struct probes *p)
{
	return p->tick_hz;
}

uint32_t probes_target(const struct probes *p)
{
	return p->target;
}

void probes_grace(void)
{
	// synchronize_rcu, unless nohz_full is on
	if (syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		usleep(100000);
}

void probes_activate(struct probes *p)
{
	__atomic_store_n(&p->state->active, 1, __ATOMIC_SEQ_CST);
}

void probes_deactivate(struct probes *p)
{
	__atomic_store_n(&p->state->active, 0, __ATOMIC_SEQ_CST);
	probes_grace();
}

static int fill_filters(struct probes *p, const struct probes_options *o)
{
	const struct filter *f = o->filter;
	int pids = bpf_map__fd(probes_map(p, "filter_pids")), comms = bpf_map__fd(probes_map(p, "filter_comms"));
	int devices = bpf_map__fd(probes_map(p, "filter_devices"));
	uint8_t one = 1, wanted = COMM_WANTED, excluded = COMM_EXCLUDED;
	int err = 0;

	if (o->config.follow)
		err = bpf_map_update_elem(pids, &o->command, &one, BPF_ANY);
	for (unsigned i = 0; f && i < f->n_pid && !err; i++)
		err = bpf_map_update_elem(pids, &f->pid[i], &one, BPF_ANY);
	for (unsigned i = 0; f && i < f->n_comm && !err; i++)
		err = bpf_map_update_elem(comms, f->comm[i], &wanted, BPF_ANY);
	for (unsigned i = 0; f && i < f->n_exclude_comm && !err; i++)
		err = bpf_map_update_elem(comms, f->exclude_comm[i], &excluded, BPF_ANY);
	for (unsigned i = 0; f && i < f->n_device && !err; i++)
		err = bpf_map_update_elem(devices, &f->device[i], &one, BPF_ANY);
	return err;
}

// The kernel's HZ, from its own jiffies beside the clock.
static int measure_tick(struct probes *p)
{
	static const uint32_t usual[] = { 100, 250, 300, 1000 };
	struct bpf_program *program = bpf_object__find_program_by_name(p->object, "read_jiffies");
	LIBBPF_OPTS(bpf_test_run_opts, run);
	uint64_t from, t0, t1;
	double hz;
	int err;

	err = bpf_prog_test_run_opts(bpf_program__fd(program), &run);
	if (err)
		return err;
	from = p->state->jiffies;
	t0 = clock_monotonic();
	usleep(50000);
	err = bpf_prog_test_run_opts(bpf_program__fd(program), &run);
	if (err)
		return err;
	t1 = clock_monotonic();
	hz = (double)(p->state->jiffies - from) * 1e9 / (double)(t1 - t0);
	p->tick_hz = 1000;
	for (unsigned i = 0; i < 4; i++)
		if (fabs(log(hz / usual[i])) < fabs(log(hz / p->tick_hz)))
			p->tick_hz = usual[i];
	return 0;
}

enum bio_state probes_check(struct probes *p, uint64_t address, const struct in_flight *e)
{
	uint64_t args[] = { address, e->end_io, e->private_ };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = args, .ctx_size_in = sizeof(args));
	struct bpf_program *program = bpf_object__find_program_by_name(p->object, "check_bio");

	return bpf_prog_test_run_opts(bpf_program__fd(program), &run) ? BIO_UNKNOWN : run.retval;
}

static struct bpf_program *want_program(struct probes *p, const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(p->object, name);

	if (!program || p->n_programs == PROGRAMS_MAX)
		return NULL;
	bpf_program__set_autoload(program, true);
	p->programs[p->n_programs++] = program;
	return program;
}

// bpf_get_stack returns no more than this sysctl says: a stack of so many frames has been cut.
static uint32_t max_frames(void)
{
	char text[32];
	uint64_t n;

	if (file_read_line("/proc/sys/kernel/perf_event_max_stack", text, sizeof(text)) ||
	    text_number(text, 1, RECORD_FRAMES, "perf_event_max_stack", &n, NULL))
		return RECORD_FRAMES;
	return (uint32_t)n;
}

// Some tracepoints have a variant for each form of their arguments.
static const char *hook_name(const char *name, const struct probes_options *o)
{
	if (o->queue_first && !strcmp(name, "on_bio_queue"))
		return "on_queue_bio_queue";
	if (o->issue_queue_first && !strcmp(name, "on_rq_issue"))
		return "on_queue_rq_issue";
	if (!o->switch_state && !strcmp(name, "on_switch"))
		return "on_task_switch";
	return name;
}

static int want_hooks(struct probes *p, const struct form *form, const struct probes_options *o)
{
	for (unsigned i = 0; i < HOOKS_MAX && form->hooks[i]; i++) {
		struct bpf_program *program = want_program(p, hook_name(form->hooks[i], o));

		if (!program)
			return -ENOENT;
		if (form->functions[i])
			bpf_program__set_expected_attach_type(program, BPF_TRACE_KPROBE_MULTI);
	}
	for (unsigned i = 0; form->timeline && i < sizeof(timeline_hooks) / sizeof(*timeline_hooks); i++)
		if (!want_program(p, hook_name(timeline_hooks[i], o)))
			return -ENOENT;
	return 0;
}

static int configure_timeline(struct probes *p, const struct probes_options *o)
{
	struct bpf_map *map = probes_map(p, ".rodata.timeline");
	size_t size;
	struct timeline_config *config = map ? (void *)bpf_map__initial_value(map, &size) : NULL;

	if (!config || size < sizeof(*config))
		return -EINVAL;
	config->stacks = o->timeline_stacks;
	return 0;
}

static int configure(struct probes *p, const struct form *form, const struct probes_options *o)
{
	struct bpf_map *map = probes_map(p, ".rodata.config");
	size_t size;
	void *value = map ? (void *)bpf_map__initial_value(map, &size) : NULL;
	struct record_config config = o->config;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int err;

	if (!value || size < sizeof(config))
		return -EINVAL;
	// submit_bio is not entered with bio_list set but below a stacked device, on any kernel.
	config.bio_list_valid |= form->backend != BACKEND_TRACEPOINT;
	config.by_pid = config.follow || (o->filter && o->filter->n_pid);
	config.by_comm = o->filter && o->filter->n_comm;
	config.by_device = o->filter && o->filter->n_device;
	config.excludes |= o->filter && o->filter->n_exclude_comm ? EXCLUDE_COMM : 0;
	config.ops = o->filter ? o->filter->ops : 0;
	config.max_frames = max_frames();
	config.ring_wakes = (o->ring ? o->ring : RECORD_RING) / 4;
	memcpy(value, &config, sizeof(config));
	if (cpus * 256 > 65536)
		bpf_map__set_max_entries(probes_map(p, "in_flight"), (uint32_t)cpus * 256);
	if (!config.async_request)
		bpf_map__set_max_entries(probes_map(p, "submitters"), 1);
	else if (cpus * 256 > 16384)
		bpf_map__set_max_entries(probes_map(p, "submitters"), (uint32_t)cpus * 256);
	if (o->ring)
		bpf_map__set_max_entries(probes_map(p, "ring"), o->ring);
	err = want_hooks(p, form, o);
	if (!err && form->timeline)
		err = configure_timeline(p, o);
	if (err)
		return err;
	for (unsigned i = 0; config.follow && i < 2; i++)
		if (!want_program(p, follow_hooks[i]))
			return -ENOENT;
	for (unsigned i = 0; i < sizeof(test_run) / sizeof(*test_run); i++)
		bpf_program__set_autoload(bpf_object__find_program_by_name(p->object, test_run[i]), true);
	if (config.async_request && !want_program(p, "on_work_queued"))
		return -ENOENT;
	if (o->cpu_hz)
		bpf_program__set_autoload(bpf_object__find_program_by_name(p->object, "on_cpu_clock"), true);
	return 0;
}

static int attach_cpu_clock(struct probes *p, uint32_t hz, struct error *e)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .size = sizeof(attr),
		.sample_period = 1000000000u / hz,
	};
	struct bpf_program *program = bpf_object__find_program_by_name(p->object, "on_cpu_clock");
	int n = libbpf_num_possible_cpus(), fd;

	if (n < 1)
		return n;
	p->cpu_links = calloc((size_t)n, sizeof(*p->cpu_links));
	if (!p->cpu_links)
		return -ENOMEM;
	p->n_cpus = n;
	for (int cpu = 0; cpu < n; cpu++) {
		fd = (int)syscall(__NR_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0 && errno == ENODEV)
			continue; // not online
		if (fd < 0)
			return error_set(e, -errno, "CPU samples: perf_event_open: %s; leave out --cpu or see `blkprof doctor`",
					 strerror(errno));
		p->cpu_links[cpu] = bpf_program__attach_perf_event(program, fd);
		if (!p->cpu_links[cpu]) {
			int err = -errno;

			close(fd);
			return error_set(e, err, "CPU samples: attaching to the clock of CPU %d: %s", cpu, strerror(-err));
		}
	}
	return 0;
}

static struct bpf_link *attach_program(struct bpf_program *program, const char *function)
{
	LIBBPF_OPTS(bpf_kprobe_multi_opts, multi, .syms = &function, .cnt = 1);

	return function ? bpf_program__attach_kprobe_multi_opts(program, NULL, &multi) : bpf_program__attach(program);
}

static int attach(struct probes *p, const struct form *form, struct error *e)
{
	for (unsigned i = 0; i < p->n_programs; i++) {
		p->links[i] = attach_program(p->programs[i], i < HOOKS_MAX ? form->functions[i] : NULL);
		if (!p->links[i])
			return error_set(e, -errno, "backend %s: the kernel refuses to attach %s: %s", backend_name(form->backend),
					 bpf_program__name(p->programs[i]), strerror(errno));
	}
	return 0;
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	if (getenv("BLKPROF_DEBUG"))
		return vfprintf(stderr, format, args);
	return 0;
}

void probes_quiet(void)
{
	libbpf_set_print(quiet);
}

static int map_state(struct probes *p)
{
	struct bpf_map *map = probes_map(p, ".data.state");
	void *state;

	if (!map)
		return -EINVAL;
	state = mmap(NULL, sizeof(*p->state), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (state == MAP_FAILED)
		return -errno;
	p->state = state;
	return 0;
}

static int refused(enum backend backend, int err, struct error *e)
{
	if (err == -EPERM && geteuid())
		return error_set(e, err, "backend %s: loading needs root: run it with sudo", backend_name(backend));
	return error_set(e, err, "backend %s: the kernel refuses to load its programs: %s%s", backend_name(backend), strerror(-err),
			 backend == BACKEND_TRACEPOINT ? "; `blkprof doctor` says what it allows" : "");
}

const char *probes_note(const struct probes *p)
{
	return p->note;
}

static bool is_admin(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return !syscall(__NR_capget, &header, data) && data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN);
}

static int open_object(struct probes *p, const struct form *form, const struct probes_options *o, struct error *e)
{
	const char *name = backend_name(form->backend);
	LIBBPF_OPTS(bpf_object_open_opts, open);
	const void *elf;
	size_t size;
	int err;

	elf = form->elf(&size);
	// libbpf looks for what the kernel's types lack in its modules', for which it needs CAP_SYS_ADMIN and gives up without;
	// where it is given a file, it leaves them alone.
	if (!is_admin() && !access(KERNEL_BTF, R_OK))
		open.btf_custom_path = KERNEL_BTF;
	p->object = bpf_object__open_mem(elf, size, &open);
	if (!p->object)
		return error_set(e, -errno, "backend %s: cannot open its object: %s", name, strerror(errno));
	err = configure(p, form, o);
	if (err)
		return error_set(e, err, "backend %s: cannot configure its programs: %s", name, strerror(-err));
	err = bpf_object__load(p->object);
	if (err)
		return refused(form->backend, err, e);
	err = map_state(p);
	if (!err)
		err = fill_filters(p, o);
	if (!err)
		err = measure_tick(p);
	if (err)
		return error_set(e, err, "backend %s: cannot prepare its maps: %s", name, strerror(-err));
	err = attach(p, form, e);
	if (!err && o->cpu_hz)
		err = attach_cpu_clock(p, o->cpu_hz, e);
	return err;
}

// Ticks of three samples or more where that can be: there is room to steer below, and a low rate is not one for each jiffy.
static void set_pace(struct probes *p, uint32_t rate)
{
	uint32_t shift = 0, hz = p->tick_hz;

	for (; rate && shift < RECORD_TICK_SHIFT && 3 * hz > rate; shift++)
		hz /= 2;
	p->target = (rate + hz / 2) / hz;
	if (rate && !p->target)
		p->target = 1;
	p->state->target = p->target;
	p->state->tick_shift = shift;
}

static int try_form(const struct form *form, const struct probes_options *o, struct probes **ret, struct error *e)
{
	struct probes *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	err = open_object(p, form, o, e);
	if (err) {
		probes_free(p);
		return err;
	}
	set_pace(p, o->rate);
	*ret = p;
	return 0;
}

// The first kernels with bpf_preempt_disable (6.10 to 6.13) refuse global functions while it holds, and the walk has one.
static int try_held(const struct form *form, const struct probes_options *o, struct probes **ret, struct error *e)
{
	int err = try_form(form, o, ret, e);
	struct probes_options unheld = *o;

	unheld.config.hold_cpu = 0;
	if (err && o->config.hold_cpu && form->backend != BACKEND_KPROBE)
		err = try_form(form, &unheld, ret, e);
	return err;
}

// A kernel that refuses what follows io_uring's requests loses that, not the backend.
static int try_following(const struct form *form, const struct probes_options *o, struct probes **ret, struct error *e)
{
	int err = try_held(form, o, ret, e);
	struct probes_options unfollowed = *o;

	unfollowed.config.async_request = 0;
	if (err && err != -EPERM && err != -ENOMEM && o->config.async_request)
		err = try_held(form, &unfollowed, ret, e);
	return err;
}

static bool fits(const struct form *form, enum backend backend, const struct probes_options *o)
{
	return form->backend == backend && form->timeline == o->timeline;
}

// For tests: the last form of each backend is used, as if the kernel refused the better ones.
#define LAST_FORMS "BLKPROF_LAST_FORMS"

int probes_new(enum backend backend, const struct probes_options *o, struct probes **ret, struct error *e)
{
	bool last_only = getenv(LAST_FORMS) != NULL;
	char why[160] = "not tried, as " LAST_FORMS " is set";
	const size_t n = sizeof(forms) / sizeof(*forms);
	int err = -EINVAL;

	if (backend == BACKEND_KPROBE && !access(PERF_SOURCES, F_OK) && access(PERF_SOURCES "/kprobe", F_OK))
		return error_set(e, -EOPNOTSUPP, "backend kprobe: this kernel has no kprobes (CONFIG_KPROBES)");
	for (size_t i = 0; i < n; i++) {
		const struct form *form = &forms[i];

		if (!fits(form, backend, o) || (last_only && i + 1 < n && fits(&forms[i + 1], backend, o)))
			continue;
		err = try_following(form, o, ret, e);
		if (!err && form->instead_of)
			snprintf((*ret)->note, sizeof((*ret)->note), "%s without %s (%s)", backend_name(backend), form->instead_of, why);
		if (!err || err == -ENOMEM || geteuid())
			return err;
		snprintf(why, sizeof(why), "%s", strerror(-err));
	}
	return err;
}

void probes_free(struct probes *p)
{
	if (!p)
		return;
	for (int i = 0; i < p->n_cpus; i++)
		bpf_link__destroy(p->cpu_links[i]);
	free(p->cpu_links);
	for (unsigned i = 0; i < p->n_programs; i++)
		bpf_link__destroy(p->links[i]);
	if (p->state)
		munmap(p->state, sizeof(*p->state));
	bpf_object__close(p->object);
	free(p);
}

int probes_timeline_losses(struct probes *p, uint64_t ret[TIMELINE_LOSSES])
{
	struct bpf_map *map = probes_map(p, "timeline_cpus");
	int n = libbpf_num_possible_cpus(), err = 0;
	struct timeline_cpu *cpus;
	uint32_t zero = 0;

	memset(ret, 0, TIMELINE_LOSSES * sizeof(*ret));
	cpus = n > 0 && map ? calloc((size_t)n, sizeof(*cpus)) : NULL;
	if (!cpus)
		return map ? -ENOMEM : 0;
	if (bpf_map_lookup_elem(bpf_map__fd(map), &zero, cpus))
		err = -errno;
	for (int cpu = 0; !err && cpu < n; cpu++)
		for (unsigned i = 0; i < TIMELINE_LOSSES; i++)
			ret[i] += cpus[cpu].lost[i];
	free(cpus);
	return err;
}

// The hooks' programs, and behind them the clock's where there are CPU samples.
static bool program_info(struct probes *p, unsigned i, struct bpf_prog_info *ret)
{
	struct bpf_program *clock = p->n_cpus ? bpf_object__find_program_by_name(p->object, "on_cpu_clock") : NULL;
	struct bpf_program *program = i < p->n_programs ? p->programs[i] : clock;
	uint32_t len = sizeof(*ret);

	return program && !bpf_obj_get_info_by_fd(bpf_program__fd(program), ret, &len);
}

uint64_t probes_recursion_misses(struct probes *p)
{
	uint64_t misses = 0;

	for (unsigned i = 0; i <= p->n_programs; i++) {
		struct bpf_prog_info info = { 0 };

		if (program_info(p, i, &info))
			misses += info.recursion_misses;
	}
	return misses;
}

void probes_run_time(struct probes *p, uint64_t *ret_ns, uint64_t *ret_runs)
{
	*ret_ns = *ret_runs = 0;
	for (unsigned i = 0; i <= p->n_programs; i++) {
		struct bpf_prog_info info = { 0 };

		if (!program_info(p, i, &info))
			continue;
		*ret_ns += info.run_time_ns;
		*ret_runs += info.run_cnt;
	}
}
