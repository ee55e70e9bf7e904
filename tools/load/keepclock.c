// SPDX-License-Identifier: Apache-2.0
// Preloaded with keepspool.c: a wall clock that a test can step while the program runs. The file KEEP_CLOCK holds by how many
// nanoseconds it is wrong.
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const int64_t right;
static const int64_t *wrong = &right;

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("KEEP_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*wrong), PROT_READ, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	if (at != MAP_FAILED)
		wrong = at;
	else if (path)
		abort();
}

static void move(struct timespec *t, int64_t by)
{
	int64_t ns = t->tv_sec * 1000000000 + t->tv_nsec + by;

	t->tv_sec = ns / 1000000000;
	t->tv_nsec = ns % 1000000000;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *t)
{
	long err = syscall(SYS_clock_gettime, id, t);

	if (!err && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		move(t, __atomic_load_n(wrong, __ATOMIC_RELAXED));
	return (int)err;
}

// The kernel's clock is right, so a time that was made from the wrong one has to be as well.
__attribute__((visibility("default"))) int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until)
{
	struct timespec t = *until;

	move(&t, -__atomic_load_n(wrong, __ATOMIC_RELAXED));
	return pthread_clockjoin_np(thread, result, CLOCK_REALTIME, &t);
}
