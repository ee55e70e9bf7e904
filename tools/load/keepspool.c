// SPDX-License-Identifier: Apache-2.0
// Preloaded into an agent (LD_PRELOAD): each file that its spool makes durable is copied into the folder KEEP_SPOOL, so that
// a test knows everything that was ever spooled, also what was sent and removed since. A copy that is named before the
// agent dies but not yet whole keeps ".tmp": whether the spool has that one is not known.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef int (*renameat_fn)(int, const char *, int, const char *);

static int ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

static int copy(int folder, const char *from, const char *to)
{
	int in = openat(folder, from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct stat st;
	off_t left = in >= 0 && out >= 0 && !fstat(in, &st) ? st.st_size : -1;

	while (left > 0) {
		ssize_t n = sendfile(out, in, NULL, (size_t)left);

		if (n <= 0)
			break;
		left -= n;
	}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return left ? -1 : 0;
}

__attribute__((visibility("default"))) int renameat(int old_folder, const char *old_name, int new_folder, const char *new_name)
{
	renameat_fn real = (renameat_fn)dlsym(RTLD_NEXT, "renameat");
	const char *keep = getenv("KEEP_SPOOL");
	char whole[4096], part[4096 + 8];
	struct timespec now;
	int result;

	if (!keep || !ends_with(new_name, ".batch"))
		return real(old_folder, old_name, new_folder, new_name);
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(whole, sizeof(whole), "%s/%s.%lld%09ld", keep, new_name, (long long)now.tv_sec, now.tv_nsec);
	snprintf(part, sizeof(part), "%s.tmp", whole);
	if (copy(old_folder, old_name, part))
		abort(); // a test that does not see everything proves nothing
	result = real(old_folder, old_name, new_folder, new_name);
	if (result)
		unlink(part);
	else
		rename(part, whole);
	return result;
}
