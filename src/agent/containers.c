// SPDX-License-Identifier: Apache-2.0
#include "agent/containers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/file.h"
#include "common/hash.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes(key, len, 0))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define KNOWN_MAX 4096
#define AGAIN_NS 10000000000ull
#define FILE_MAX (1u << 20)  // of a container
#define LIST_MAX (16u << 20) // of podman's list of all
#define NAMES_MAX 65536	     // entries of a folder that are looked at

struct known {
	char id[65];
	char name[256]; // "" = no file told
	uint64_t again; // when it is asked for once more
	UT_hash_handle hh;
};

struct containers {
	int root;
	struct known *known;
};

struct containers *containers_new(const char *root)
{
	struct containers *c = calloc(1, sizeof(*c));

	if (c)
		c->root = open(root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return c;
}

static void forget(struct containers *c)
{
	struct known *k, *next;

	HASH_ITER(hh, c->known, k, next) {
		HASH_DEL(c->known, k);
		free(k);
	}
}

void containers_free(struct containers *c)
{
	if (!c)
		return;
	forget(c);
	if (c->root >= 0)
		close(c->root);
	free(c);
}

// ---- reading

// Within the root, and without links to elsewhere. What a user owns is read only on the file system of the root: nothing
// that they may have mounted there (FUSE, a network) can keep us waiting.
static int open_beneath(const struct containers *c, const char *path, int flags, bool users)
{
	struct open_how how = { .flags = (uint64_t)(O_CLOEXEC | O_NONBLOCK | flags), .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	long fd;

	if (users)
		how.resolve |= RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
	fd = syscall(__NR_openat2, c->root, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

static int read_text(const struct containers *c, const char *path, size_t max, bool users, struct buf *b)
{
	int fd = open_beneath(c, path, O_RDONLY, users), err;
	struct stat st;

	if (fd < 0)
		return fd;
	err = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? file_read_fd(fd, max, b) : -EINVAL;
	close(fd);
	return err;
}

typedef bool (*parse_fn)(const char *text, size_t size, char *out, size_t cap);

__attribute__((format(printf, 6, 7))) static bool try_file(const struct containers *c, parse_fn parse, bool users, char *out,
							   size_t cap, const char *format, ...)
{
	struct buf b = { 0 };
	char path[512];
	va_list args;
	bool found;
	int len;

	va_start(args, format);
	len = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof(path))
		return false;
	found = !read_text(c, path, FILE_MAX, users, &b) && parse((const char *)b.data, b.len, out, cap);
	buf_free(&b);
	return found;
}

// ---- where each runtime keeps what it knows

static bool from_containerd(const struct containers *c, const char *id, char *out, size_t cap)
{
	static const char *const roots[] = { "run/containerd", "run/k3s/containerd", "run/k0s/containerd",
					     "var/snap/microk8s/common/run/containerd" };
	static const char *const spaces[] = { "k8s.io", "default" };

	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++)
		for (size_t k = 0; k < sizeof(spaces) / sizeof(*spaces); k++)
			if (try_file(c, containers_parse_oci, false, out, cap, "%s/io.containerd.runtime.v2.task/%s/%s/config.json",
				     roots[i], spaces[k], id))
				return true;
	return false;
}

static bool from_podman_list(const struct containers *c, const char *path, const char *id, bool users, char *out, size_t cap)
{
	struct buf b = { 0 };
	// As JSON it takes many times its size: a user's own list gets less.
	bool found = !read_text(c, path, users ? FILE_MAX : LIST_MAX, users, &b) &&
		     containers_parse_podman((const char *)b.data, b.len, id, out, cap);

	buf_free(&b);
	return found;
}

// CRI-O and podman share their storage; the former's annotations say more.
static bool from_storage(const struct containers *c, const char *base, const char *id, bool users, char *out, size_t cap)
{
	char path[512];

	if (try_file(c, containers_parse_oci, users, out, cap, "%s/overlay-containers/%s/userdata/config.json", base, id))
		return true;
	snprintf(path, sizeof(path), "%s/overlay-containers/containers.json", base);
	return from_podman_list(c, path, id, users, out, cap);
}

// The user's home as the node's own passwd says; the file is root's.
static bool home_of(const struct containers *c, long uid, char *out, size_t cap)
{
	struct buf b = { 0 };
	char *line, *save = NULL;
	bool found = false;

	if (read_text(c, "etc/passwd", FILE_MAX, false, &b))
		goto out;
	for (line = strtok_r((char *)b.data, "\n", &save); line && !found; line = strtok_r(NULL, "\n", &save)) {
		char home[256];
		long its;

		if (sscanf(line, "%*[^:]:%*[^:]:%ld:%*[^:]:%*[^:]:%255[^:]", &its, home) != 2 &&
		    sscanf(line, "%*[^:]:%*[^:]:%ld:%*[^:]::%255[^:]", &its, home) != 2)
			continue;
		if (its != uid || *home != '/')
			continue;
		snprintf(out, cap, "%s", home + 1);
		found = true;
	}
out:
	buf_free(&b);
	return found;
}

static bool from_user(const struct containers *c, const struct service_container *who, char *out, size_t cap)
{
	char home[256], base[320];

	if (who->uid < 0 || !home_of(c, who->uid, home, sizeof(home)))
		return false;
	if (try_file(c, containers_parse_docker, true, out, cap, "%s/.local/share/docker/containers/%s/config.v2.json", home, who->id))
		return true;
	snprintf(base, sizeof(base), "%s/.local/share/containers/storage", home);
	return from_storage(c, base, who->id, true, out, cap);
}

// ---- the kubelet's folders

static DIR *open_folder(const struct containers *c, const char *path)
{
	int fd = open_beneath(c, path, O_RDONLY | O_DIRECTORY, false);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (!folder && fd >= 0)
		close(fd);
	return folder;
}

static bool from_logs(const struct containers *c, const char *id, char *out, size_t cap)
{
	DIR *folder = open_folder(c, "var/log/containers");
	struct dirent *d;
	bool found = false;

	for (unsigned n = 0; folder && !found && n < NAMES_MAX && (d = readdir(folder)); n++)
		found = containers_parse_log(d->d_name, id, out, cap);
	if (folder)
		closedir(folder);
	return found;
}

// The only folder in a pod's folder is its only container's.
static void only_container(const struct containers *c, const char *pod_folder, char *out, size_t cap)
{
	char path[320];
	struct dirent *d;
	unsigned n = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "var/log/pods/%s", pod_folder);
	folder = open_folder(c, path);
	while (folder && (d = readdir(folder)) && n < 2) {
		if (*d->d_name == '.')
			continue;
		snprintf(out, cap, "%s", d->d_name);
		n++;
	}
	if (folder)
		closedir(folder);
	if (n != 1)
		*out = 0;
}

// "NAMESPACE_POD_UID" of /var/log/pods, made into the name of a log that says the same.
static bool from_pod(const struct containers *c, const struct service_container *who, char *out, size_t cap)
{
	DIR *folder = *who->pod_uid ? open_folder(c, "var/log/pods") : NULL;
	char space[256], container[256], log[600];
	bool found = false;
	struct dirent *d;

	for (unsigned n = 0; folder && !found && n < NAMES_MAX && (d = readdir(folder)); n++) {
		char *pod, *uid;

		snprintf(space, sizeof(space), "%s", d->d_name);
		pod = strchr(space, '_');
		uid = pod ? strchr(pod + 1, '_') : NULL;
		if (!uid || strcmp(uid + 1, who->pod_uid))
			continue;
		*pod++ = 0;
		*uid = 0;
		only_container(c, d->d_name, container, sizeof(container));
		if (snprintf(log, sizeof(log), "%s_%s_%.255s-%s.log", pod, space, container, who->id) < (int)sizeof(log))
			found = containers_parse_log(log, who->id, out, cap);
	}
	if (folder)
		closedir(folder);
	return found;
}

static bool look_up(const struct containers *c, const struct service_container *who, char *out, size_t cap)
{
	return from_containerd(c, who->id, out, cap) ||
	       from_storage(c, "var/lib/containers/storage", who->id, false, out, cap) ||
	       from_storage(c, "run/containers/storage", who->id, false, out, cap) ||
	       try_file(c, containers_parse_docker, false, out, cap, "var/lib/docker/containers/%s/config.v2.json", who->id) ||
	       from_user(c, who, out, cap) || from_logs(c, who->id, out, cap) || from_pod(c, who, out, cap);
}

// ---- what was asked before

static struct known *remember(struct containers *c, const char *id)
{
	struct known *k;

	if (HASH_COUNT(c->known) >= KNOWN_MAX)
		forget(c);
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	memcpy(k->id, id, sizeof(k->id));
	HASH_ADD_STR(c->known, id, k);
	if (k->hh.tbl)
		return k;
	free(k);
	return NULL;
}

bool containers_name(struct containers *c, const struct service_container *who, uint64_t now_ns, char *out, size_t cap)
{
	struct known *k;

	HASH_FIND_STR(c->known, who->id, k);
	if (!k)
		k = remember(c, who->id);
	if (!k)
		return false;
	if (!*k->name && now_ns >= k->again) {
		k->again = now_ns + AGAIN_NS;
		if (!look_up(c, who, k->name, sizeof(k->name)))
			k->name[0] = 0;
	}
	if (!*k->name)
		return false;
	snprintf(out, cap, "%s", k->name);
	return true;
}
