// SPDX-License-Identifier: Apache-2.0
// Names of the system calls that threads sleep in.
#include <stddef.h>
#include <sys/syscall.h>

#include "timeline/timeline_internal.h"

#define CALL(name) [__NR_##name] = #name

#ifdef __x86_64__
static const char *const names[] = {
	CALL(read), CALL(write), CALL(open), CALL(close), CALL(poll), CALL(mmap), CALL(munmap), CALL(mprotect), CALL(brk),
	CALL(ioctl), CALL(pread64), CALL(pwrite64), CALL(readv), CALL(writev), CALL(select), CALL(sched_yield), CALL(msync),
	CALL(mincore), CALL(madvise), CALL(pause), CALL(nanosleep), CALL(sendfile), CALL(connect), CALL(accept), CALL(sendto),
	CALL(recvfrom), CALL(sendmsg), CALL(recvmsg), CALL(shutdown), CALL(clone), CALL(fork), CALL(vfork), CALL(execve),
	CALL(exit), CALL(wait4), CALL(kill), CALL(semop), CALL(msgsnd), CALL(msgrcv), CALL(fcntl), CALL(flock), CALL(fsync),
	CALL(fdatasync), CALL(truncate), CALL(ftruncate), CALL(getdents), CALL(rename), CALL(mkdir), CALL(rmdir), CALL(creat),
	CALL(link), CALL(unlink), CALL(stat), CALL(fstat), CALL(lstat), CALL(lseek), CALL(access), CALL(ptrace), CALL(sync),
	CALL(mount), CALL(umount2), CALL(readahead), CALL(futex), CALL(io_getevents), CALL(io_submit), CALL(getdents64),
	CALL(semtimedop), CALL(fadvise64), CALL(clock_nanosleep), CALL(exit_group), CALL(epoll_wait), CALL(epoll_ctl),
	CALL(waitid), CALL(openat), CALL(mkdirat), CALL(newfstatat), CALL(unlinkat), CALL(renameat), CALL(pselect6), CALL(ppoll),
	CALL(splice), CALL(sync_file_range), CALL(epoll_pwait), CALL(signalfd), CALL(fallocate), CALL(accept4), CALL(preadv),
	CALL(pwritev), CALL(recvmmsg), CALL(syncfs), CALL(sendmmsg), CALL(renameat2), CALL(execveat), CALL(membarrier),
	CALL(copy_file_range), CALL(preadv2), CALL(pwritev2), CALL(statx), CALL(rt_sigtimedwait), CALL(rt_sigsuspend),
	CALL(restart_syscall), CALL(bpf), CALL(mremap),
#ifdef __NR_io_uring_enter
	CALL(io_uring_enter),
#endif
#ifdef __NR_clone3
	CALL(clone3),
#endif
#ifdef __NR_epoll_pwait2
	CALL(epoll_pwait2),
#endif
#ifdef __NR_futex_waitv
	CALL(futex_waitv),
#endif
};
#else
static const char *const names[1];
#endif

const char *syscall_name(uint32_t nr)
{
	return nr < sizeof(names) / sizeof(*names) ? names[nr] : NULL;
}
