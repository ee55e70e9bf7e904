// SPDX-License-Identifier: Apache-2.0
// Opens the files behind mappings, each once however many processes map it.
//
// A file is looked for through /proc/PID/map_files while its process lives: that leads to the very file whatever its
// path says now. Else by its path in the root of the process or, if that has ended, of its ancestors, and on the host;
// it must then be the file that was mapped, by device and inode. Nothing is opened before it is known to be a regular
// file on a file system that cannot keep us waiting for a server or a daemon (NFS, CIFS, FUSE, autofs and the like are
// looked at without asking them, and left): such a mapping is named by its path only.
#ifndef BLKPROF_AGENT_PROCS_FILES_H
#define BLKPROF_AGENT_PROCS_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "agent/proctable.h"
#include "symbolize/symbolize.h"

struct procs_files;

struct procs_files *procs_files_new(struct symbolizer *symbolizer);
void procs_files_free(struct procs_files *f);
// Opens what p has mapped and was not tried yet.
void procs_files_resolve(struct procs_files *f, struct proctable *t, struct proc *p);
// Opens again a file whose module has closed it.
void procs_files_reopen(struct procs_files *f, struct proctable *t, struct proc *p, const struct proc_mapping *m);
// Opens a regular file for reading by its path in the root of a process that lives; symbolic links lead no further than
// that root. Not on file systems that could keep us waiting.
int procs_files_open(struct procs_files *f, pid_t viewer, const char *path);
uint64_t procs_files_missing(const struct procs_files *f);
// Gives back modules that no mapping refers to any more.
void procs_files_sweep(struct procs_files *f);

#endif
