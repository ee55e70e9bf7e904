/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What a call's file descriptor is. Included by request.bpf.c. */
#ifndef BLKPROF_BPF_REQUEST_FILES_H
#define BLKPROF_BPF_REQUEST_FILES_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
};

struct file {
	struct inode *f_inode;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs___call {
	unsigned long di, si, dx, r10, orig_ax;
};
#else
struct pt_regs___call {
	u64 regs[31];
	u64 orig_x0;
	s32 syscallno;
};
#endif

#pragma clang attribute pop

/* The registers of the call: unchanged by it, but for the result. straight: read as they stand, where each probe read is a call. */
static __always_inline u64 call_argument(struct pt_regs *regs, u32 i, bool straight)
{
	struct pt_regs___call *r = (struct pt_regs___call *)regs;

#if defined(__TARGET_ARCH_x86)
	if (straight)
		return i == 0 ? r->di : i == 1 ? r->si : i == 2 ? r->dx : r->r10;
	return i == 0 ? BPF_CORE_READ(r, di) : i == 1 ? BPF_CORE_READ(r, si) : i == 2 ? BPF_CORE_READ(r, dx) : BPF_CORE_READ(r, r10);
#else
	if (straight)
		return i == 0 ? r->orig_x0 : i == 1 ? r->regs[1] : i == 2 ? r->regs[2] : r->regs[3];
	return i == 0 ? BPF_CORE_READ(r, orig_x0) : i == 1 ? BPF_CORE_READ(r, regs[1]) :
						    i == 2 ? BPF_CORE_READ(r, regs[2]) : BPF_CORE_READ(r, regs[3]);
#endif
}

static __always_inline u32 call_number(struct pt_regs *regs)
{
	struct pt_regs___call *r = (struct pt_regs___call *)regs;

#if defined(__TARGET_ARCH_x86)
	return (u32)BPF_CORE_READ(r, orig_ax);
#else
	return (u32)BPF_CORE_READ(r, syscallno);
#endif
}

#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define S_IFDIR 0040000
#define S_IFIFO 0010000

enum file_class {
	FILE_DISK,
	FILE_SOCKET,
	FILE_EVENT,
	FILE_PSEUDO,
};

static __always_inline bool is_pseudo(u64 magic)
{
	switch (magic) {
	case 0x9fa0:	 /* proc */
	case 0x62656572: /* sysfs */
	case 0x27e0eb:	 /* cgroup */
	case 0x63677270: /* cgroup2 */
	case 0x64626720: /* debugfs */
	case 0x74726163: /* tracefs */
	case 0xcafe4a11: /* bpf */
		return true;
	}
	return false;
}

#define ANON_INODE_MAGIC 0x09041934

/* Since 6.2: what is at an address, read as it stands. Before, by probe reads. */
extern void *bpf_rdonly_cast(const void *object, u32 btf_id) __ksym __weak;
#define OF_FILE(p, field) (config.rdonly_cast ? (p)->field : BPF_CORE_READ(p, field))

static __always_inline struct file *file_of(u32 fd)
{
	struct task_struct___request *task = this_typed_task();
	struct file **files, *file = 0;
	struct fdtable *table;

	table = HAS_TASK_BTF ? task->files->fdt : BPF_CORE_READ(task, files, fdt);
	if (!table || fd >= OF_TASK(table, max_fds))
		return 0;
	files = OF_TASK(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	if (file && config.rdonly_cast)
		return bpf_rdonly_cast(file, bpf_core_type_id_kernel(struct file));
	return file;
}

static __noinline enum file_class file_class(u32 fd, u64 *ret_inode)
{
	struct file *file = file_of(fd);
	struct super_block *sb;
	struct inode *inode;
	u64 magic;
	u32 mode;

	if (!ret_inode || !file)
		return FILE_PSEUDO;
	inode = OF_FILE(file, f_inode);
	mode = OF_FILE(inode, i_mode) & S_IFMT;
	if (mode == S_IFSOCK) {
		*ret_inode = OF_FILE(inode, i_ino);
		return FILE_SOCKET;
	}
	if (mode == S_IFIFO)
		return FILE_EVENT;
	sb = OF_FILE(inode, i_sb);
	magic = OF_FILE(sb, s_magic);
	if (magic == ANON_INODE_MAGIC)
		return FILE_EVENT;
	if (mode == S_IFBLK)
		return FILE_DISK;
	return (mode == S_IFREG || mode == S_IFDIR) && !is_pseudo(magic) ? FILE_DISK : FILE_PSEUDO;
}

static __always_inline u8 by_class(struct req_thread *t, u8 on_disk, u8 on_socket)
{
	u64 inode = 0;

	switch (file_class((u32)t->arg0, &inode)) {
	case FILE_DISK:
		return on_disk;
	case FILE_SOCKET:
		t->inode = inode;
		return on_socket;
	case FILE_EVENT:
		return CALL_EVENT;
	default:
		return CALL_PSEUDO;
	}
}

#define MSG_OOB 1
#define MSG_PEEK 2
#define MSG_ERRQUEUE 0x2000

/* Of a socket: `flags` of a call that only looks take nothing off the connection. */
static __always_inline u8 receive_kind(struct req_thread *t, u64 flags)
{
	u8 call = by_class(t, CALL_SOCKET_READ, CALL_SOCKET_READ);

	if (flags & (MSG_PEEK | MSG_OOB | MSG_ERRQUEUE))
		t->inode = 0;
	return call;
}

/* Between a pipe or a file and a socket. */
static __always_inline u8 copy_kind(struct req_thread *t)
{
	u64 inode = 0;

	if (file_class((u32)t->arg2, &inode) == FILE_SOCKET) {
		t->inode = inode;
		return CALL_COPY;
	}
	if (file_class((u32)t->arg0, &inode) != FILE_SOCKET)
		return CALL_COPY;
	t->inode = inode;
	return CALL_SOCKET_READ;
}

static __always_inline u8 call_kind(struct req_thread *t, u8 action, struct pt_regs *regs)
{
	u64 inode = 0;

	switch (action) {
	case ACTION_READ:
		return by_class(t, CALL_READ, CALL_SOCKET_READ);
	case ACTION_PREAD:
		return by_class(t, CALL_PREAD, CALL_SOCKET_READ);
	case ACTION_READV:
	case ACTION_PREADV:
		return by_class(t, CALL_READV, CALL_SOCKET_READ);
	case ACTION_WRITE:
		return by_class(t, CALL_WRITE, CALL_SOCKET_WRITE);
	case ACTION_PWRITE:
		return by_class(t, CALL_PWRITE, CALL_SOCKET_WRITE);
	case ACTION_WRITEV:
	case ACTION_PWRITEV:
		return by_class(t, CALL_WRITEV, CALL_SOCKET_WRITE);
	case ACTION_RECV:
		return receive_kind(t, call_argument(regs, 3, false));
	case ACTION_RECVMSG:
		return receive_kind(t, t->arg2);
	case ACTION_SEND:
	case ACTION_SENDMSG:
		return by_class(t, CALL_SOCKET_WRITE, CALL_SOCKET_WRITE);
	case ACTION_SENDFILE:
		if (file_class((u32)t->arg0, &inode) == FILE_SOCKET)
			t->inode = inode;
		return CALL_COPY;
	case ACTION_COPY:
		return copy_kind(t);
	case ACTION_FSYNC:
		return CALL_FSYNC;
	case ACTION_FDATASYNC:
		return CALL_FDATASYNC;
	case ACTION_MSYNC:
		return CALL_MSYNC;
	case ACTION_META:
	case ACTION_CLOSE:
		return CALL_META;
	case ACTION_FUTEX:
		return CALL_FUTEX;
	case ACTION_POLL:
		return CALL_POLL;
	case ACTION_SLEEP:
		return CALL_SLEEP;
	}
	return CALL_OTHER;
}

static __always_inline bool moves_bytes(u32 call)
{
	return call <= CALL_COPY || call == CALL_SOCKET_READ || call == CALL_SOCKET_WRITE;
}

#endif
