// SPDX-License-Identifier: Apache-2.0
// What the files say: text in, text out.
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "agent/containers.h"
#include "common/text.h"

#define PART_MAX 254 // a DNS name has 253 bytes

// ---- names

static bool is_safe(const char *text, size_t len)
{
	// What Kubernetes makes random suffixes of: no vowels, nothing that looks like another character.
	return len && strspn(text, "bcdfghjklmnpqrstvwxz2456789") >= len;
}

// Position of the last '-' before end, or 0.
static size_t last_dash(const char *text, size_t end)
{
	while (end && text[end - 1] != '-')
		end--;
	return end ? end - 1 : 0;
}

void containers_workload(const char *pod, char *out, size_t cap)
{
	size_t len = strlen(pod), dash = last_dash(pod, len), tail = len - dash - 1, second, middle;

	if (!dash || !tail)
		goto whole;
	if (strspn(pod + dash + 1, "0123456789") == tail && tail <= 5)
		goto cut; // StatefulSet: an ordinal
	if (tail != 5 || !is_safe(pod + dash + 1, tail))
		goto whole;
	// DaemonSet, Job: five random characters; Deployment: the replica set's hash before; CronJob: a number.
	second = last_dash(pod, dash);
	middle = dash - second - 1;
	if (second && ((middle >= 6 && middle <= 10 && is_safe(pod + second + 1, middle)) ||
		       (middle >= 8 && strspn(pod + second + 1, "0123456789") == middle)))
		dash = second;
cut:
	snprintf(out, cap, "%.*s", (int)dash, pod);
	return;
whole:
	snprintf(out, cap, "%s", pod);
}

// One part of a service's name: valid text without the '/' that separates them.
static bool clean(const char *text, char out[PART_MAX])
{
	size_t n;

	if (!text)
		return false;
	n = text_sanitize(out, PART_MAX, text, strlen(text));
	for (size_t i = 0; i < n; i++)
		if (out[i] == '/')
			out[i] = '_';
	return n;
}

// "a/b/c" of those that are there; false without the first two.
static bool compose(const char *a, const char *b, const char *c, char *out, size_t cap)
{
	char one[PART_MAX], two[PART_MAX], three[PART_MAX], whole[3 * PART_MAX];
	int len;

	if (!clean(a, one) || !clean(b, two))
		return false;
	if (clean(c, three))
		len = snprintf(whole, sizeof(whole), "%s/%s/%s", one, two, three);
	else
		len = snprintf(whole, sizeof(whole), "%s/%s", one, two);
	text_sanitize(out, cap, whole, (size_t)len); // never cut inside a character
	return true;
}

static bool compose_pod(const char *space, const char *pod, const char *container, char *out, size_t cap)
{
	char workload[PART_MAX];

	if (!pod)
		return false;
	containers_workload(pod, workload, sizeof(workload));
	return compose(space, workload, container, out, cap);
}

static bool single(const char *name, char *out, size_t cap)
{
	char one[PART_MAX];

	if (name)
		name += strspn(name, "/"); // Docker writes "/web"
	if (!clean(name, one))
		return false;
	text_sanitize(out, cap, one, strlen(one));
	return true;
}

// ---- JSON

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static json_t *load(const char *text, size_t size)
{
	return json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
}

// Labels and annotations that orchestrators put on their containers, the same in all runtimes.
static bool from_labels(const json_t *l, char *out, size_t cap)
{
	static const char *const pods[][3] = {
		{ "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri.sandbox-name", "io.kubernetes.cri.container-name" },
		{ "io.kubernetes.pod.namespace", "io.kubernetes.pod.name", "io.kubernetes.container.name" },
		{ "io.kubernetes.cri-o.Namespace", "io.kubernetes.cri-o.KubeName", "io.kubernetes.container.name" },
	};
	const char *name;

	for (size_t i = 0; i < sizeof(pods) / sizeof(*pods); i++)
		if (compose_pod(text_of(l, pods[i][0]), text_of(l, pods[i][1]), text_of(l, pods[i][2]), out, cap))
			return true;
	if (compose(text_of(l, "com.docker.compose.project"), text_of(l, "com.docker.compose.service"), NULL, out, cap))
		return true;
	if (compose(text_of(l, "io.podman.compose.project"), text_of(l, "com.docker.compose.service"), NULL, out, cap))
		return true;
	name = text_of(l, "com.docker.swarm.service.name");
	if (name && single(name, out, cap))
		return true;
	return compose(text_of(l, "nerdctl/namespace"), text_of(l, "nerdctl/name"), NULL, out, cap);
}

bool containers_parse_oci(const char *text, size_t size, char *out, size_t cap)
{
	json_t *root = load(text, size);
	bool found = root && from_labels(json_object_get(root, "annotations"), out, cap);

	json_decref(root);
	return found;
}

bool containers_parse_docker(const char *text, size_t size, char *out, size_t cap)
{
	json_t *root = load(text, size);
	bool found = root && (from_labels(json_object_get(json_object_get(root, "Config"), "Labels"), out, cap) ||
			      single(text_of(root, "Name"), out, cap));

	json_decref(root);
	return found;
}

bool containers_parse_podman(const char *text, size_t size, const char *id, char *out, size_t cap)
{
	json_t *root = load(text, size), *entry;
	bool found = false;
	size_t i;

	json_array_foreach(root, i, entry) {
		const char *its = text_of(entry, "id");

		if (!its || strcmp(its, id))
			continue;
		found = single(json_string_value(json_array_get(json_object_get(entry, "names"), 0)), out, cap);
		break;
	}
	json_decref(root);
	return found;
}

// ---- the kubelet's names

bool containers_parse_log(const char *name, const char *id, char *out, size_t cap)
{
	char copy[3 * PART_MAX], *pod = copy, *space, *container;
	size_t len = strlen(name), tail = strlen(id) + 5; // "-ID.log"

	if (len <= tail || len >= sizeof(copy) || name[len - tail] != '-' || strncmp(name + len - tail + 1, id, strlen(id)) ||
	    strcmp(name + len - 4, ".log"))
		return false;
	memcpy(copy, name, len - tail);
	copy[len - tail] = 0;
	space = strchr(copy, '_');
	container = space ? strchr(space + 1, '_') : NULL;
	if (!container)
		return false;
	*space++ = 0;
	*container++ = 0;
	return compose_pod(space, pod, container, out, cap);
}
