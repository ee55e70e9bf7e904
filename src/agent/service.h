// SPDX-License-Identifier: Apache-2.0
// Which service a process belongs to, from its cgroup's path; pure, no file access.
#ifndef BLKPROF_AGENT_SERVICE_H
#define BLKPROF_AGENT_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

// The service named by the text of a /proc/PID/cgroup file: a container's short id (12 hexadecimal digits of docker,
// containerd, CRI-O, podman, kubepods), else the systemd unit (nginx.service; instances and scopes as documented), else
// `process`. Where the unified hierarchy is only the root, a v1 controller (memory, pids, name=systemd) says it.
void service_from_cgroup(const char *proc_cgroup_text, const char *process, char *out, size_t cap);
// The path of the cgroup that stands for the process: unified unless that is "/", else v1 memory, else v1 pids.
// ret_controller is "" for unified, else the controller's name. Returns 0 or -ENOENT.
int service_cgroup_path(const char *proc_cgroup_text, char *ret_path, size_t cap, char *ret_controller, size_t controller_cap);

// The container of the same text, for the node's own files to be asked about it.
struct service_container {
	char id[65];	 // 64 hexadecimal digits
	char pod_uid[40]; // of Kubernetes, with '-'; "" = none
	long uid;	 // whose user session it runs in (rootless), -1 = nobody's
};
bool service_container(const char *proc_cgroup_text, struct service_container *ret);

// A thread's name collapsed to the stem of its pool: "qtp730923082-65" is "qtp-", "GC Thread#3" is "GC Thread#",
// "kworker/u8:2-writeback" is "kworker/", "jbd2/vda1-8" is "jbd2/". The rules are in docs/formats.md.
void thread_stem(const char *comm, char *out, size_t cap);
// The root frame of a kernel thread: its kind without numbers and queue names ("kworker", "jbd2", "md", "loop").
void kernel_thread_kind(const char *comm, char *out, size_t cap);

#endif
