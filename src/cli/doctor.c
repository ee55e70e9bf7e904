// SPDX-License-Identifier: Apache-2.0
// blkprof doctor: what this kernel, these privileges and this host allow, one line a check. Changes nothing; the probes
// that it tries are detached at once.
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/devices.h"
#include "agent/hostinfo.h"
#include "agent/recorder.h"
#include "cli/command.h"
#include "cli/privileges.h"
#include "cli/record_options.h"
#include "common/text.h"

#define MEMLOCK_ENOUGH (64u << 20)

enum verdict {
	OK,
	WARN, // record works, something is missing from profiles
	NO
};

static void line(enum verdict v, const char *what, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void line(enum verdict v, const char *what, const char *format, ...)
{
	static const char *const words[] = { "ok", "warn", "no" };
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printf("%-5s%-13s%s\n", words[v], what, text);
}

static void check_kernel(const struct hostinfo *h)
{
	line(OK, "kernel", "%s on %s, %u CPUs", h->release, h->machine, h->cpus);
	if (h->btf)
		line(OK, "BTF", "the kernel describes its types (/sys/kernel/btf/vmlinux)");
	else
		line(WARN, "BTF", "there is no /sys/kernel/btf/vmlinux: a kernel built with CONFIG_DEBUG_INFO_BTF has it");
	if (h->kprobes)
		line(OK, "kprobes", "the kernel has kprobes");
	else
		line(WARN, "kprobes", "the kernel has none: the kprobe backend cannot work, the tracepoint backend can");
	if (h->bpf_jit == 0)
		line(WARN, "BPF JIT", "off: the probes are interpreted and cost several times as much; sysctl net.core.bpf_jit_enable=1");
}

static void check_lockdown(const struct hostinfo *h)
{
	if (h->lockdown == LOCKDOWN_CONFIDENTIALITY)
		line(WARN, "lockdown", "confidentiality: BPF programs must not read kernel memory; only the typed tracepoint and "
				       "fentry programs load");
	else if (h->lockdown == LOCKDOWN_UNKNOWN)
		line(OK, "lockdown", "none that can be seen");
	else
		line(OK, "lockdown", "%s", lockdown_name(h->lockdown));
}

static void check_privileges(const struct hostinfo *h)
{
	unsigned count, missing = 0;
	const struct hostinfo_need *need = hostinfo_needs(&count);

	for (unsigned i = 0; i < count; i++) {
		if (hostinfo_capable(h, need[i].capability))
			continue;
		if (need[i].capability == CAP_SYS_RESOURCE && h->memlock_accounting != ANSWER_YES)
			continue;
		missing++;
		line(need[i].required ? NO : WARN, "privileges", "%s is missing: it is needed to %s; %s", need[i].name, need[i].why,
		     geteuid() ? "run as root" : "root was started without it: allow it to this container or service");
	}
	if (!missing)
		line(OK, "privileges", "all that is needed");
	if (!h->initial_user_ns)
		line(NO, "privileges", "this is a user namespace of its own, whose capabilities the kernel does not take for BPF; run "
				       "outside of it");
}

static void check_container(const struct hostinfo *h)
{
	if (h->initial_pid_ns && h->initial_cgroup_ns && !*h->container) {
		line(OK, "namespaces", "those of the host");
		return;
	}
	if (!h->initial_pid_ns)
		line(WARN, "namespaces", "this is a container%s%s%s with pids of its own: programs outside of it stay unnamed; run on the "
					 "host or with --pid=host",
		     *h->container ? " (" : "", h->container, *h->container ? ")" : "");
	else
		line(OK, "namespaces", "this is a container%s%s%s with the host's pids", *h->container ? " (" : "", h->container,
		     *h->container ? ")" : "");
	if (!h->initial_cgroup_ns)
		line(WARN, "namespaces", "cgroup paths are those inside this container: services may be named less well");
}

static void check_memlock(const struct hostinfo *h)
{
	char limit[32];

	if (h->memlock_accounting != ANSWER_YES || h->memlock_limit >= MEMLOCK_ENOUGH)
		return;
	line(hostinfo_capable(h, CAP_SYS_RESOURCE) ? OK : WARN, "memlock",
	     "this kernel counts BPF maps as locked memory, of which %s are allowed; %s",
	     text_bytes(limit, sizeof(limit), (double)h->memlock_limit),
	     hostinfo_capable(h, CAP_SYS_RESOURCE) ? "record raises the limit" : "raise it with ulimit -l unlimited");
}

static void check_names(const struct hostinfo *h)
{
	if (h->kallsyms)
		line(OK, "kernel names", "/proc/kallsyms shows addresses: kernel frames get names");
	else
		line(WARN, "kernel names", "/proc/kallsyms shows no addresses (kernel.kptr_restrict is %d): kernel frames stay without "
					   "names; needs CAP_SYSLOG, and sysctl kernel.kptr_restrict below 2",
		     h->kptr_restrict);
	if (h->perf_events)
		line(OK, "processes", "perf events tell of processes that start and end meanwhile, and allow --cpu");
	else
		line(WARN, "processes", "the kernel has no perf events: programs that end soon may stay unnamed, and --cpu does not work");
}

static void check_cgroups(const struct hostinfo *h)
{
	if (h->cgroup_layout == CGROUP_NONE)
		line(WARN, "cgroups", "no cgroup file system is mounted: services are named after their process");
	else
		line(OK, "cgroups", "%s%s%s%s", cgroup_layout_name(h->cgroup_layout), *h->cgroup_controllers ? " (" : "",
		     h->cgroup_controllers, *h->cgroup_controllers ? ")" : "");
}

static void check_devices(void)
{
	struct error e = { 0 };
	struct devices *devices = devices_new(NULL, &e);
	char names[400] = "";
	unsigned disks = 0;

	if (!devices) {
		line(WARN, "disks", "cannot be listed: %s", e.text);
		return;
	}
	for (unsigned i = 0; i < devices_count(devices); i++) {
		const struct device *d = devices_get(devices, i);
		size_t used = strlen(names);

		if (d->dev != d->disk)
			continue;
		disks++;
		if (used + sizeof(d->name) + 8 < sizeof(names))
			snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "", d->name);
		else if (strcmp(names + used - 3, "..."))
			strcat(names, ", ...");
	}
	devices_free(devices);
	if (disks)
		line(OK, "disks", "%u: %s", disks, names);
	else
		line(WARN, "disks", "there is no block device: every profile will be empty");
}

static void check_backends(void)
{
	for (enum backend b = BACKEND_FENTRY; b < BACKENDS; b++) {
		struct error e = { 0 };

		if (recorder_try_backend(b, &e))
			line(NO, backend_name(b), "%s", e.text);
		else
			line(OK, backend_name(b), "can be attached");
	}
}

// The last line rests on nothing but a recording that was really set up, as record does it.
static int verdict(void)
{
	struct recorder_options ro = { .rate = RECORD_RATE };
	struct recorder *r = NULL;
	struct error e = { 0 };
	const char *reason;
	int err;

	err = recorder_new(&ro, &r, &e);
	if (err) {
		privileges_explain(err, &e);
		error_prefix(&e, 0, "record will not work");
		fflush(stdout);
		return command_error("doctor", STATUS_FAILED, &e);
	}
	reason = recorder_backend_reason(r);
	line(OK, "record", "works, with the %s backend%s%s", recorder_backend(r), *reason ? ": " : "", reason);
	recorder_free(r);
	return STATUS_DONE;
}

static int run(const void *options)
{
	struct hostinfo h;
	struct error e;
	int status, err = hostinfo_read(NULL, &h);

	if (err) {
		error_set(&e, err, "cannot read what the host is: %s; is /proc mounted?", strerror(-err));
		return command_error("doctor", STATUS_FAILED, &e);
	}
	check_kernel(&h);
	check_lockdown(&h);
	check_privileges(&h);
	check_memlock(&h);
	check_container(&h);
	check_names(&h);
	check_cgroups(&h);
	check_devices();
	check_backends();
	status = verdict();
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	error_set(&e, 0, "cannot write to standard output: %s", strerror(errno));
	return command_error("doctor", STATUS_FAILED, &e);
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "say what this kernel and these privileges allow",
	.usage = "",
	.about = "Checks the kernel, the privileges and the host, one line each: 'ok', 'warn' (record works, profiles lack "
		 "something) or 'no'. Tries every backend by attaching it for a moment. The exit status is 0 exactly when 'blkprof "
		 "record' will work.",
	.run = run,
};
