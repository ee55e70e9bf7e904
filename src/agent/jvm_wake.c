// SPDX-License-Identifier: Apache-2.0
#include "agent/jvm_wake.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/attach_files.h"
#include "agent/frozen.h"
#include "agent/jvm.h"
#include "agent/proc_status.h"
#include "agent/proc_threads.h"
#include "agent/procs_maps.h"
#include "common/clock.h"

#define SECOND 1000000000ull
#define AGAIN_NS (3600 * SECOND)
#define MINUTE_NS (60 * SECOND)
#define A_MINUTE 4 // signals to all processes together
#define KNOWN 512
#define WAIT_NS (60 * SECOND)  // a collection may stop all its threads so long
#define GRACE_NS (2 * SECOND)  // when we are to end

struct known {
	pid_t pid;
	uint64_t starttime; // tells lives of one pid apart
	uint64_t used, sent;
	uint32_t counted; // bits of enum jvm_wake_count
};

struct jvm_wake {
	pthread_mutex_t lock;
	struct known known[KNOWN];
	uint64_t last[A_MINUTE]; // when signals were sent, the oldest at `next`
	unsigned next;
	uint64_t counts[JVM_WAKE_COUNTS];
	unsigned users; // calls that have not returned
};

static const struct {
	const char *name, *help;
	bool loss;
} counts[JVM_WAKE_COUNTS] = {
	[JVM_WAKE_SENT] = { "signals", "SIGQUITs sent to JVMs, to make them open their attach socket", false },
	[JVM_WAKE_OPENED] = { "opened", "JVMs that have opened it", false },
	[JVM_WAKE_SILENT] = { "silent", "JVMs that have not within a minute: no Java names", true },
	[JVM_WAKE_SIGNALS_OFF] = { "signals_off", "JVMs with -Xrs (ReduceSignalUsage) and without an attach socket: no Java names", true },
	[JVM_WAKE_ATTACH_OFF] = { "attach_off", "JVMs with -XX:+DisableAttachMechanism: no Java names", true },
	[JVM_WAKE_UNREAD] = { "flags_unread", "JVMs whose flags cannot be read from their memory, left in peace: no Java names", true },
	[JVM_WAKE_GONE] = { "socket_gone", "JVMs whose attach socket was deleted since it was opened: no Java names", true },
	[JVM_WAKE_NO_PLACE] = { "no_place", "JVMs that have no folder of a local file system that they may write to: no Java names", true },
	[JVM_WAKE_NOT_ALLOWED] = { "not_allowed", "JVMs of users that we may not act as (CAP_SETUID, CAP_SETGID, CAP_KILL): no Java names", true },
	[JVM_WAKE_LIMITED] = { "waiting", "JVMs that had to wait since others were sent signals", false },
};

struct jvm_wake *jvm_wake_new(void)
{
	struct jvm_wake *w = calloc(1, sizeof(*w));

	if (w)
		pthread_mutex_init(&w->lock, NULL);
	return w;
}

void jvm_wake_free(struct jvm_wake *w)
{
	if (!w || __atomic_load_n(&w->users, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_destroy(&w->lock);
	free(w);
}

uint64_t jvm_wake_count(const struct jvm_wake *w, enum jvm_wake_count what)
{
	return what < JVM_WAKE_COUNTS ? __atomic_load_n(&w->counts[what], __ATOMIC_RELAXED) : 0;
}

const char *jvm_wake_count_name(enum jvm_wake_count what)
{
	return what < JVM_WAKE_COUNTS ? counts[what].name : "?";
}

const char *jvm_wake_count_help(enum jvm_wake_count what)
{
	return what < JVM_WAKE_COUNTS ? counts[what].help : "?";
}

bool jvm_wake_count_loss(enum jvm_wake_count what)
{
	return what < JVM_WAKE_COUNTS && counts[what].loss;
}

// Under the lock. A process that is not known takes the place of the one that was asked for the longest ago.
static struct known *know(struct jvm_wake *w, pid_t pid, uint64_t starttime)
{
	struct known *k = w->known;

	for (unsigned i = 0; i < KNOWN; i++) {
		if (w->known[i].pid == pid && w->known[i].starttime == starttime) {
			k = &w->known[i];
			break;
		}
		if (w->known[i].used < k->used)
			k = &w->known[i];
	}
	if (k->pid != pid || k->starttime != starttime)
		*k = (struct known){ .pid = pid, .starttime = starttime };
	k->used = clock_monotonic();
	return k;
}

static void count(struct jvm_wake *w, pid_t pid, uint64_t starttime, enum jvm_wake_count what)
{
	struct known *k;

	pthread_mutex_lock(&w->lock);
	k = know(w, pid, starttime);
	if (!(k->counted & 1u << what))
		__atomic_fetch_add(&w->counts[what], 1, __ATOMIC_RELAXED);
	k->counted |= 1u << what;
	pthread_mutex_unlock(&w->lock);
}

// 0, -EALREADY when it was sent one within the hour, -EAGAIN when others were within the minute. With `take` it counts as sent.
static int may_send(struct jvm_wake *w, pid_t pid, uint64_t starttime, bool take)
{
	uint64_t now = clock_monotonic();
	struct known *k;
	int err = 0;

	pthread_mutex_lock(&w->lock);
	k = know(w, pid, starttime);
	if (k->sent && now - k->sent < AGAIN_NS)
		err = -EALREADY;
	else if (w->last[w->next] && now - w->last[w->next] < MINUTE_NS)
		err = -EAGAIN;
	if (!err && take) {
		k->sent = now;
		k->counted &= ~(1u << JVM_WAKE_SENT | 1u << JVM_WAKE_OPENED | 1u << JVM_WAKE_SILENT);
		w->last[w->next] = now;
		w->next = (w->next + 1) % A_MINUTE;
	}
	pthread_mutex_unlock(&w->lock);
	return err;
}

static int read_starttime(pid_t pid, uint64_t *ret)
{
	struct procs_stat s;
	int err = procs_stat_read(pid, &s);

	if (!err)
		*ret = s.starttime;
	return err;
}

// Its thread that takes SIGQUIT runs; the one that answers at the socket does not yet: it would have made the socket, and to
// older JVMs a SIGQUIT then means a dump.
struct threads {
	bool dispatcher, listener;
};

static struct threads look_at_threads(pid_t pid)
{
	static const char *const names[] = { "Signal Dispatch", "Attach Listener" };
	unsigned found = proc_threads_named(pid, names, 2);

	return (struct threads){ .dispatcher = found & 1, .listener = found & 2 };
}

struct target {
	pid_t pid;
	int pidfd;
	uint64_t starttime;
	struct jvm jvm;
	struct proc_status status;
};

// Of its flags. JVM_WAKE_COUNTS: nothing is against it.
static enum jvm_wake_count forbidden(const struct jvm *jvm)
{
	const struct jvm_options *o = &jvm->options;

	if (o->no_attach == JVM_ON)
		return JVM_WAKE_ATTACH_OFF;
	if (o->few_signals == JVM_ON)
		return JVM_WAKE_SIGNALS_OFF;
	return jvm->exact ? JVM_WAKE_COUNTS : JVM_WAKE_UNREAD;
}

// One that comes to it later, when the file is gone, would mean a dump.
static bool takes_signals(pid_t pid, const struct proc_status *status)
{
	return status->catches_quit && !status->stopped && !process_is_frozen(pid);
}

static int refuse(struct jvm_wake *w, const struct target *t, enum jvm_wake_count why, int err)
{
	count(w, t->pid, t->starttime, why);
	return err;
}

// Whether it may be sent the signal as far as can be seen from outside.
static int look(struct jvm_wake *w, struct target *t)
{
	enum jvm_wake_count why;
	struct threads threads;
	int err = read_starttime(t->pid, &t->starttime);

	if (!err)
		err = jvm_find(t->pid, &t->jvm);
	if (!err)
		err = proc_status_read(t->pid, &t->status);
	if (err)
		return err;
	why = forbidden(&t->jvm);
	threads = look_at_threads(t->pid);
	// Its flags are not read before it has started.
	if (why == JVM_WAKE_UNREAD && !threads.dispatcher)
		return -EAGAIN;
	if (why != JVM_WAKE_COUNTS)
		return refuse(w, t, why, -EPERM);
	err = may_send(w, t->pid, t->starttime, false);
	if (err)
		return err == -EAGAIN ? refuse(w, t, JVM_WAKE_LIMITED, err) : err;
	if (threads.listener)
		return refuse(w, t, JVM_WAKE_GONE, -ENOTCONN);
	return threads.dispatcher && takes_signals(t->pid, &t->status) ? 0 : -EAGAIN;
}

static bool has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

static int socket_is_there(const struct target *t)
{
	int fd = attach_socket_find(t->pid, &t->status);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

// Again, with the file in place: another program may run in the process by now, or somebody else have made it open its socket.
static int look_again(const struct target *t)
{
	struct target now = { .pid = t->pid };
	struct threads threads;
	int err = jvm_find(t->pid, &now.jvm);

	if (err)
		return err;
	threads = look_at_threads(t->pid);
	if (threads.listener || !socket_is_there(t))
		return -EBUSY;
	err = proc_status_read(t->pid, &now.status);
	if (err)
		return err;
	if (!threads.dispatcher || !takes_signals(t->pid, &now.status) || now.jvm.start != t->jvm.start ||
	    forbidden(&now.jvm) != JVM_WAKE_COUNTS || now.status.uid != t->status.uid ||
	    now.status.inner_pid != t->status.inner_pid)
		return -EAGAIN;
	return has_ended(t->pidfd) ? -ESRCH : 0;
}

// The file must stay until the JVM has looked for it: to a JVM without one the signal means a dump.
static int await_socket(const struct target *t, bool (*ends)(void *context), void *context)
{
	uint64_t until = clock_monotonic() + WAIT_NS, now;
	bool ending = false;

	for (unsigned ms = 10; (now = clock_monotonic()) < until; ms = ms < 200 ? 2 * ms : ms) {
		struct pollfd p = { .fd = t->pidfd, .events = POLLIN };

		if (!socket_is_there(t))
			return 0;
		if (!ending && ends && ends(context)) {
			ending = true;
			until = now + GRACE_NS;
		}
		if (poll(&p, 1, (int)ms) > 0)
			return -ESRCH;
	}
	return -ETIMEDOUT;
}

static int send_quit(struct jvm_wake *w, const struct target *t, bool (*ends)(void *context), void *context)
{
	int err = look_again(t);

	if (err)
		return err;
	err = may_send(w, t->pid, t->starttime, true);
	if (err)
		return err;
	if (syscall(SYS_pidfd_send_signal, t->pidfd, SIGQUIT, NULL, 0))
		return errno == EPERM ? refuse(w, t, JVM_WAKE_NOT_ALLOWED, -EACCES) : -errno;
	count(w, t->pid, t->starttime, JVM_WAKE_SENT);
	err = await_socket(t, ends, context);
	if (!err)
		count(w, t->pid, t->starttime, JVM_WAKE_OPENED);
	return err == -ETIMEDOUT ? refuse(w, t, JVM_WAKE_SILENT, err) : err;
}

static int open_socket(struct jvm_wake *w, struct target *t, bool (*ends)(void *context), void *context)
{
	struct attach_trigger trigger;
	int err = look(w, t);

	if (err)
		return err;
	err = attach_trigger_place(&trigger, t->pid, &t->status);
	if (err == -EPERM)
		return refuse(w, t, JVM_WAKE_NOT_ALLOWED, -EACCES);
	if (err)
		return err == -EBUSY ? err : refuse(w, t, JVM_WAKE_NO_PLACE, err);
	err = send_quit(w, t, ends, context);
	attach_trigger_remove(&trigger, &t->status);
	return err;
}

int jvm_wake_open(struct jvm_wake *w, pid_t pid, bool (*ends)(void *context), void *context)
{
	struct target t = { .pid = pid };
	int err;

	// What is read of the process after this and before it has ended is of this one.
	t.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (t.pidfd < 0)
		return -errno;
	__atomic_fetch_add(&w->users, 1, __ATOMIC_SEQ_CST);
	err = open_socket(w, &t, ends, context);
	__atomic_fetch_sub(&w->users, 1, __ATOMIC_SEQ_CST);
	close(t.pidfd);
	return err;
}
