// SPDX-License-Identifier: Apache-2.0
// The lasting name of a container, from the files that its runtime and the kubelet keep on this node; docs/services.md
// has the rules. The files belong to the runtimes, and partly to whoever made the container: bounded, checked, cached.
#ifndef BLKPROF_AGENT_CONTAINERS_H
#define BLKPROF_AGENT_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/service.h"

struct containers;

// root: where the node's files are; NULL = "/". Nothing is read before it is asked for.
struct containers *containers_new(const char *root);
void containers_free(struct containers *c); // NULL too
// "namespace/workload/container", "project/service", "name": false when no file tells, and for ten seconds after.
// now_ns: CLOCK_MONOTONIC.
bool containers_name(struct containers *c, const struct service_container *who, uint64_t now_ns, char *out, size_t cap);

// ---- parts of it, pure, for tests and fuzzing

// "web-7d4b9c6f5d-x2x9k" is "web", "db-0" is "db": what differs from pod to pod is taken off.
void containers_workload(const char *pod, char *out, size_t cap);
// Of an OCI bundle's config.json (containerd, CRI-O, podman), or of Docker's config.v2.json. False when it does not tell.
bool containers_parse_oci(const char *text, size_t size, char *out, size_t cap);
bool containers_parse_docker(const char *text, size_t size, char *out, size_t cap);
// The container with this id in podman's containers.json.
bool containers_parse_podman(const char *text, size_t size, const char *id, char *out, size_t cap);
// "POD_NAMESPACE_CONTAINER-ID.log" of /var/log/containers.
bool containers_parse_log(const char *name, const char *id, char *out, size_t cap);

#endif
