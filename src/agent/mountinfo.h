// SPDX-License-Identifier: Apache-2.0
// Reads /proc/PID/mountinfo, one mount after the other, within a bound; octal escapes are decoded.
#ifndef BLKPROF_AGENT_MOUNTINFO_H
#define BLKPROF_AGENT_MOUNTINFO_H

#include <stdbool.h>
#include <stdint.h>

struct mount {
	uint32_t id;	     // of this mount, as /proc/PID/fdinfo has it
	uint32_t dev;	     // KDEV; major 0 for file systems without one device (btrfs, tmpfs, nfs)
	const char *root;    // the folder of the file system that is mounted ("/", or that of a bind mount)
	const char *point;   // where
	const char *options; // of the mount
	const char *type;    // "ext4"
	const char *source;  // "/dev/vda1", "tmpfs", "server:/export"
	const char *super;   // options of the file system
};

#define MOUNTINFO_MAX (32u << 20) // bytes of the file

// Splits one line without its newline; the strings of ret lie in it and are changed in place. False for what is no mount.
bool mountinfo_line(char *line, struct mount *ret);
// Calls `each` for each mount until it returns something else than 0, which is then returned; lines that are no mount are
// passed over. path NULL = /proc/self/mountinfo. -errno when the file cannot be read, -EFBIG beyond the bound.
int mountinfo_each(const char *path, int (*each)(const struct mount *m, void *data), void *data);
// Whether a comma-separated list has the option: "dax" is also there as "dax=always" (but not as dax=never, =inode).
bool mountinfo_option(const char *list, const char *option);

#endif
