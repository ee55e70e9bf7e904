// SPDX-License-Identifier: Apache-2.0
// The rules are in docs/formats.md, "Services". Text in, text out: a cgroup's path is whatever its owner called it.
#include "agent/service.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

#define SHORT_ID 12
#define PART_MAX 256 // a cgroup's name has at most 255 bytes
#define DEPTH_MAX 64 // folders of a path that are looked at, from the root

// One line of /proc/PID/cgroup: "4:memory:/docker/…", "0::/system.slice/…".
struct line {
	const char *controllers, *path;
	size_t controllers_len, path_len;
	bool unified;
};

static const char *next_line(const char *text, struct line *ret)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		const char *first = memchr(text, ':', len), *second, *end = text + len;

		second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
		text = *end ? end + 1 : end;
		if (!second || second[1] != '/')
			continue;
		ret->controllers = first + 1;
		ret->controllers_len = (size_t)(second - first - 1);
		ret->path = second + 1;
		ret->path_len = (size_t)(end - second - 1);
		ret->unified = !ret->controllers_len;
		return text;
	}
	return NULL;
}

static bool has_controller(const struct line *l, const char *name)
{
	size_t len = strlen(name), i = 0;

	while (i < l->controllers_len) {
		const char *at = l->controllers + i, *comma = memchr(at, ',', l->controllers_len - i);
		size_t n = comma ? (size_t)(comma - at) : l->controllers_len - i;

		if (n == len && !memcmp(at, name, len))
			return true;
		i += n + 1;
	}
	return false;
}

static bool is_root(const struct line *l)
{
	return l->path_len == 1;
}

// The line of a controller (NULL = unified), that of a root only when asked for.
static bool find_line(const char *text, const char *controller, bool root, struct line *ret)
{
	struct line l;

	while ((text = next_line(text, &l))) {
		if ((is_root(&l) && !root) || (controller ? !has_controller(&l, controller) : !l.unified))
			continue;
		*ret = l;
		return true;
	}
	return false;
}

// ---- the parts of a path

struct path {
	char part[DEPTH_MAX][PART_MAX];
	unsigned n;
};

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// systemd writes what a unit's name must not have as \xNN, and puts '_' before names that the kernel has taken.
static void decode(char *out, const char *in, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < PART_MAX; i++) {
		int high = i + 3 < len && in[i] == '\\' && in[i + 1] == 'x' ? hex_digit(in[i + 2]) : -1;
		int low = high >= 0 ? hex_digit(in[i + 3]) : -1;

		if (low >= 0 && (high || low)) {
			out[n++] = (char)(high << 4 | low);
			i += 3;
		} else {
			out[n++] = in[i];
		}
	}
	out[n] = 0;
}

static void split(const char *text, size_t len, struct path *ret)
{
	ret->n = 0;
	for (size_t i = 0; i < len && ret->n < DEPTH_MAX;) {
		const char *slash = memchr(text + i, '/', len - i);
		size_t n = slash ? (size_t)(slash - text) - i : len - i;

		// From inside a cgroup namespace, what is outside of it begins with "..".
		if (n && !(n == 2 && text[i] == '.' && text[i + 1] == '.'))
			decode(ret->part[ret->n++], text + i, n);
		i += n + 1;
	}
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool ends(const char *text, const char *with)
{
	size_t len = strlen(text), n = strlen(with);

	return len > n && !strcmp(text + len - n, with);
}

// Removes the suffix when it is there.
static bool chop(char *text, const char *suffix)
{
	if (!ends(text, suffix))
		return false;
	text[strlen(text) - strlen(suffix)] = 0;
	return true;
}

// ---- containers

static bool is_hex(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
			return false;
	return true;
}

// 64 hexadecimal digits: docker, containerd, CRI-O, podman.
static bool is_id(const char *text)
{
	return strlen(text) == 64 && is_hex(text, 64);
}

// ECS on Fargate: 32 hexadecimal digits of the task, '-', a decimal number of the container.
static bool is_ecs_id(const char *text)
{
	return strlen(text) > 33 && is_hex(text, 32) && text[32] == '-' && strspn(text + 33, "0123456789") == strlen(text + 33);
}

// Where the identity is in a part whose ".scope" was cut off; "" for the monitor beside a container
// (crio-conmon-<id>.scope): conmon is no part of it.
static const char *find_id(const char *copy)
{
	const char *id = strrchr(copy, ':');

	if (!id && !is_ecs_id(copy))
		id = strrchr(copy, '-');
	if (id && strstr(copy, "conmon-"))
		return "";
	return id ? id + 1 : copy;
}

// The identity in "docker-<id>.scope", "cri-containerd-<id>.scope", "libpod-<id>", "x.slice:cri-containerd:<id>", "<id>".
static bool container_id(const char *part, const char *parent, char *out, size_t cap)
{
	char copy[PART_MAX];
	const char *id;

	snprintf(copy, sizeof(copy), "%s", part);
	chop(copy, ".scope");
	id = find_id(copy);
	if (is_id(id)) {
		snprintf(out, cap, "%.*s", SHORT_ID, id);
		return true;
	}
	// A number alone would not be enough: elsewhere such names are no containers.
	if (!is_ecs_id(id) || (strcmp(parent, "ecs") && !(strlen(parent) == 32 && is_hex(parent, 32))))
		return false;
	snprintf(out, cap, "%.*s%s", SHORT_ID, id, strrchr(id, '-'));
	return true;
}

// LXC and LXD name the container: lxc.payload.NAME, lxc.payload/NAME, lxc/NAME.
static bool lxc_name(const struct path *p, unsigned i, char *out, size_t cap)
{
	if (begins(p->part[i], "lxc.payload.") && p->part[i][12]) {
		snprintf(out, cap, "%s", p->part[i] + 12);
		return true;
	}
	if (!i || (strcmp(p->part[i - 1], "lxc") && strcmp(p->part[i - 1], "lxc.payload")))
		return false;
	snprintf(out, cap, "%s", p->part[i]);
	return true;
}

// machine.slice: nspawn's unit, and scopes of machined. libvirt counts its guests: machine-qemu-7-db.scope is qemu-db.
static bool machine_name(const struct path *p, unsigned i, char *out, size_t cap)
{
	char copy[PART_MAX], *dash, *rest;

	if (!i || strcmp(p->part[i - 1], "machine.slice"))
		return false;
	snprintf(copy, sizeof(copy), "%s", p->part[i]);
	if (ends(copy, ".service")) {
		snprintf(out, cap, "%s", copy);
		return true;
	}
	if (!begins(copy, "machine-") || !chop(copy, ".scope"))
		return false;
	dash = strchr(copy + 8, '-');
	rest = dash ? dash + 1 + strspn(dash + 1, "0123456789") : NULL;
	if (rest && rest > dash + 1 && *rest == '-' && rest[1])
		memmove(dash, rest, strlen(rest) + 1);
	snprintf(out, cap, "%s", copy + 8);
	return true;
}

// The innermost container: with docker in docker and kind it is the one that the process was started in.
static bool find_container(const struct path *p, char *out, size_t cap)
{
	for (unsigned i = p->n; i-- > 0;)
		if (container_id(p->part[i], i ? p->part[i - 1] : "", out, cap) || lxc_name(p, i, out, cap) ||
		    machine_name(p, i, out, cap))
			return true;
	return false;
}

// ---- systemd units

// An instance that is new at each start: a UUID or long hexadecimal number, or numbers that count connections and dumps
// ("12-4711-0", "3-10.0.0.1:22-10.0.0.2:51111").
static bool is_transient_instance(const char *text, size_t len)
{
	size_t digits = strspn(text, "0123456789"), hex = 0;

	for (size_t i = 0; i < len; i++) {
		if (!strchr("0123456789abcdef-.:[]_", text[i]))
			return false;
		hex += is_hex(text + i, 1);
	}
	return hex >= 16 || (digits && digits < len && text[digits] == '-');
}

// Ends in what only counts or identifies: "-1234", "-r8f0…", "-u12", "-p12-i34", "-UUID".
static bool is_counted(const char *text)
{
	const char *dash = strrchr(text, '-'), *tail = dash ? dash + 1 : "";

	if (*tail && strchr("riup", *tail))
		tail++;
	return *tail && is_hex(tail, strlen(tail)) && (strspn(tail, "0123456789") == strlen(tail) || strlen(tail) >= 8);
}

// snap.APP.COMMAND-UUID.scope and snap.APP.COMMAND.UUID.scope are the application's.
static bool snap_scope(char *name)
{
	size_t len = strlen(name), uuid = 36;

	if (!begins(name, "snap.") || len <= uuid + 6 || strspn(name + len - uuid, "0123456789abcdef-") != uuid)
		return false;
	name[len - uuid - 1] = 0;
	return true;
}

static bool service_unit(char *name, char *out, size_t cap)
{
	char *at = strchr(name, '@');
	size_t len = strlen(name) - 8;

	if (at && is_transient_instance(at + 1, len - (size_t)(at + 1 - name)))
		snprintf(out, cap, "%.*s@.service", (int)(at - name), name);
	else if (begins(name, "run-")) {
		// systemd-run without a name: "run-u12.service", "run-r<hex>.service"
		name[len] = 0;
		if (is_counted(name))
			return false;
		snprintf(out, cap, "%s.service", name);
	} else {
		snprintf(out, cap, "%s", name);
	}
	return true;
}

// Scopes that systemd and desktops make for each session or start say nothing that lasts; others are named by somebody.
static bool scope_unit(char *name, char *out, size_t cap)
{
	static const char *const transient[] = { "session-", "app-", "vte-spawn-", "tmux-spawn-", "crio-conmon-", "libpod-conmon-" };

	if (!strcmp(name, "init.scope"))
		return false;
	for (size_t i = 0; i < sizeof(transient) / sizeof(*transient); i++)
		if (begins(name, transient[i]))
			return false;
	chop(name, ".scope");
	if (snap_scope(name)) {
		snprintf(out, cap, "%s", name);
		return true;
	}
	if (is_counted(name))
		return false;
	snprintf(out, cap, "%s.scope", name);
	return true;
}

// 1: named, 0: this part is no unit, -1: a unit that does not last, so the process's name is used.
static int unit_name(const char *part, char *out, size_t cap)
{
	static const char *const others[] = { ".mount", ".swap", ".socket" };
	char copy[PART_MAX];

	snprintf(copy, sizeof(copy), "%s", *part == '_' ? part + 1 : part);
	if (ends(copy, ".service"))
		return service_unit(copy, out, cap) ? 1 : -1;
	if (ends(copy, ".scope"))
		return scope_unit(copy, out, cap) ? 1 : -1;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		if (ends(copy, others[i])) {
			snprintf(out, cap, "%s", copy);
			return 1;
		}
	}
	if (begins(copy, "openrc.") && copy[7]) {
		snprintf(out, cap, "%s", copy + 7);
		return 1;
	}
	return 0;
}

// The innermost unit: for a user's services that is theirs, not user@1000.service.
static bool find_unit(const struct path *p, char *out, size_t cap)
{
	for (unsigned i = p->n; i-- > 0;) {
		int found;

		// The user's own manager.
		if (!strcmp(p->part[i], "init.scope") && i)
			continue;
		if (i && !strcmp(p->part[i - 1], "openrc")) {
			snprintf(out, cap, "%s", p->part[i]);
			return true;
		}
		found = unit_name(p->part[i], out, cap);
		if (found)
			return found > 0;
	}
	return false;
}

static bool find_in(const char *text, bool (*find)(const struct path *p, char *out, size_t cap), char *out, size_t cap)
{
	static const char *const order[] = { NULL, "memory", "pids", "name=systemd" };
	struct path p;
	struct line l;

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		if (!find_line(text, order[i], false, &l))
			continue;
		split(l.path, l.path_len, &p);
		if (find(&p, out, cap))
			return true;
	}
	return false;
}

void service_from_cgroup(const char *proc_cgroup_text, const char *process, char *out, size_t cap)
{
	char name[PART_MAX];

	// A container in any hierarchy first: beside v1 controllers, docker leaves cgroup2 at containerd's own service.
	if (!find_in(proc_cgroup_text, find_container, name, sizeof(name)) &&
	    !find_in(proc_cgroup_text, find_unit, name, sizeof(name)))
		snprintf(name, sizeof(name), "%s", process);
	text_sanitize(out, cap, name, strlen(name));
}

// ---- the same container, for the files that tell more of it

// "pod<uid>" of cgroupfs, "kubepods-burstable-pod<uid>.slice" of systemd, which writes '_' for '-'.
static bool pod_uid(const char *part, char out[40])
{
	const char *at = strstr(part, "pod");
	size_t n = 0;

	for (; at; at = strstr(at + 1, "pod")) {
		const char *uid = at + 3;

		for (n = 0; n < 36 && (strchr("0123456789abcdef", uid[n]) || uid[n] == '-' || uid[n] == '_') && uid[n]; n++)
			out[n] = uid[n] == '_' ? '-' : uid[n];
		out[n] = 0;
		if (n >= 32 && out[0] != '-')
			return true;
	}
	out[0] = 0;
	return false;
}

// Rootless: below somebody's user-UID.slice.
static long user_of(const struct path *p)
{
	unsigned uid;

	for (unsigned i = 0; i < p->n; i++)
		if (begins(p->part[i], "user-") && ends(p->part[i], ".slice") && sscanf(p->part[i] + 5, "%9u", &uid) == 1)
			return (long)uid;
	return -1;
}

static bool read_container(const struct path *p, struct service_container *ret)
{
	char copy[PART_MAX], pod[40];

	for (unsigned i = p->n; i-- > 0;) {
		const char *id;

		snprintf(copy, sizeof(copy), "%s", p->part[i]);
		chop(copy, ".scope");
		id = find_id(copy);
		if (!is_id(id))
			continue;
		memcpy(ret->id, id, sizeof(ret->id));
		ret->uid = user_of(p);
		ret->pod_uid[0] = 0;
		for (unsigned k = 0; k <= i; k++)
			if (pod_uid(p->part[k], pod))
				memcpy(ret->pod_uid, pod, sizeof(pod));
		return true;
	}
	return false;
}

bool service_container(const char *proc_cgroup_text, struct service_container *ret)
{
	static const char *const order[] = { NULL, "memory", "pids", "name=systemd" };
	struct path p;
	struct line l;

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		if (!find_line(proc_cgroup_text, order[i], false, &l))
			continue;
		split(l.path, l.path_len, &p);
		if (read_container(&p, ret))
			return true;
	}
	return false;
}

int service_cgroup_path(const char *proc_cgroup_text, char *ret_path, size_t cap, char *ret_controller, size_t controller_cap)
{
	static const char *const order[] = { "", "memory", "pids" };
	struct line l;

	for (size_t i = 0; i < 6; i++) {
		const char *controller = order[i % 3];

		// In the second round everything is at the root.
		if (!find_line(proc_cgroup_text, *controller ? controller : NULL, i >= 3, &l))
			continue;
		if (l.path_len >= cap || strlen(controller) >= controller_cap)
			return -ENOENT;
		memcpy(ret_path, l.path, l.path_len);
		ret_path[l.path_len] = 0;
		memcpy(ret_controller, controller, strlen(controller) + 1);
		return 0;
	}
	return -ENOENT;
}
