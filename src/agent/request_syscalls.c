// SPDX-License-Identifier: Apache-2.0
// What each system call does, by this machine's numbers.
#include <sys/syscall.h>

#include "agent/request_probes_internal.h"

static const struct {
	short number;
	unsigned char action;
} calls[] = {
	{ SYS_read, ACTION_READ },	     { SYS_pread64, ACTION_PREAD },	    { SYS_readv, ACTION_READV },
	{ SYS_preadv, ACTION_PREADV },	     { SYS_preadv2, ACTION_PREADV },	    { SYS_write, ACTION_WRITE },
	{ SYS_pwrite64, ACTION_PWRITE },     { SYS_writev, ACTION_WRITEV },	    { SYS_pwritev, ACTION_PWRITEV },
	{ SYS_pwritev2, ACTION_PWRITEV },    { SYS_recvfrom, ACTION_RECV },	    { SYS_recvmsg, ACTION_RECVMSG },
	{ SYS_sendto, ACTION_SEND },	     { SYS_sendmsg, ACTION_SENDMSG },	    { SYS_sendfile, ACTION_SENDFILE },
	{ SYS_copy_file_range, ACTION_COPY }, { SYS_splice, ACTION_COPY },	    { SYS_fsync, ACTION_FSYNC },
	{ SYS_fdatasync, ACTION_FDATASYNC }, { SYS_msync, ACTION_MSYNC },	    { SYS_sync_file_range, ACTION_MSYNC },
	{ SYS_syncfs, ACTION_MSYNC },	     { SYS_sync, ACTION_MSYNC },	    { SYS_openat, ACTION_META },
	{ SYS_statx, ACTION_META },	     { SYS_fstat, ACTION_META },	    { SYS_newfstatat, ACTION_META },
	{ SYS_getdents64, ACTION_META },     { SYS_unlinkat, ACTION_META },	    { SYS_renameat, ACTION_META },
	{ SYS_renameat2, ACTION_META },	     { SYS_mkdirat, ACTION_META },	    { SYS_linkat, ACTION_META },
	{ SYS_symlinkat, ACTION_META },	     { SYS_ftruncate, ACTION_META },	    { SYS_truncate, ACTION_META },
	{ SYS_fallocate, ACTION_META },	     { SYS_faccessat, ACTION_META },	    { SYS_readlinkat, ACTION_META },
	{ SYS_futex, ACTION_FUTEX },	     { SYS_epoll_pwait, ACTION_POLL },	    { SYS_ppoll, ACTION_POLL },
	{ SYS_pselect6, ACTION_POLL },	     { SYS_accept, ACTION_POLL },	    { SYS_accept4, ACTION_POLL },
	{ SYS_nanosleep, ACTION_SLEEP },     { SYS_clock_nanosleep, ACTION_SLEEP }, { SYS_rt_sigtimedwait, ACTION_SLEEP },
	{ SYS_close, ACTION_CLOSE },	     { SYS_dup3, ACTION_DUP2 },
#ifdef SYS_open // calls that newer machines do not have
	{ SYS_open, ACTION_META },	     { SYS_stat, ACTION_META },		    { SYS_lstat, ACTION_META },
	{ SYS_access, ACTION_META },	     { SYS_unlink, ACTION_META },	    { SYS_rename, ACTION_META },
	{ SYS_mkdir, ACTION_META },	     { SYS_rmdir, ACTION_META },	    { SYS_readlink, ACTION_META },
	{ SYS_getdents, ACTION_META },	     { SYS_creat, ACTION_META },	    { SYS_link, ACTION_META },
	{ SYS_poll, ACTION_POLL },	     { SYS_select, ACTION_POLL },	    { SYS_epoll_wait, ACTION_POLL },
	{ SYS_dup2, ACTION_DUP2 },
#endif
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, ACTION_POLL },
#endif
};

void request_actions(u8 ret[REQ_SYSCALLS])
{
	for (unsigned i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i].number >= 0 && calls[i].number < REQ_SYSCALLS)
			ret[calls[i].number] = calls[i].action;
}
