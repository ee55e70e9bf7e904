// SPDX-License-Identifier: Apache-2.0
#include "batches.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pprof/builder.h"
#include "wire/header.h"

#define FUNCTIONS 2000
#define DEPTH 24
#define BOMB (256u << 20)

const char *const bad_names[BADS] = { "none", "garbage", "version", "broken", "truncated", "bomb", "node", "parts", "oversized" };

static uint64_t next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

// As tools/bench/store has them: 300 stacks of a service, few of which have most samples; 2 samples in 1,000 have a stack that
// no other profile has.
static uint64_t common_stack(uint64_t *random)
{
	uint64_t a = next(random) % 1000, b = a * a * a / 1000000;

	return next(random) % 1000 < 2 ? 1000000 + next(random) % 1000000000 : b * 300 / 1000;
}

// Stacks that share their outer frames, as those of one program do.
static void add_sample(struct pprof_builder *p, uint32_t mapping, const char *service, uint64_t *random)
{
	static const char *const devices[] = { "nvme0n1", "dm-0" }, *const ops[] = { "read", "write" };
	uint64_t which = common_stack(random), bytes = 4096ull << next(random) % 8, n = 1 + next(random) % 20;
	uint64_t us = 50 + next(random) % 5000;
	int64_t values[PPROF_TYPES] = { (int64_t)n, (int64_t)(n * us * 1000), 0, 0, 0 };
	struct pprof_label_info labels[] = { { "device", devices[which % 2], 0, NULL }, { "op", ops[which / 2 % 2], 0, NULL },
					     { "service", service, 0, NULL }, { "latency", NULL, us < 1000 ? 500000 : 2000000, "nanoseconds" } };
	uint32_t stack[DEPTH + 1];

	values[which / 2 % 2 ? PPROF_WRITE_BYTES : PPROF_READ_BYTES] = (int64_t)(n * bytes);
	for (unsigned d = 0; d < DEPTH; d++) {
		uint64_t function = (which >> (d < 10 ? 0 : d / 4)) * 31 % FUNCTIONS;
		char name[64];
		struct pprof_line_info line = { name, NULL, NULL, 0 };

		function = (function + d * 57) % FUNCTIONS;
		snprintf(name, sizeof(name), "module_%u_function_%u", (unsigned)(function % 37), (unsigned)function);
		stack[d] = pprof_add_location(p, mapping, 0x400000 + function * 256, &line, 1);
	}
	stack[DEPTH] = pprof_add_frame(p, service);
	pprof_add_sample(p, stack, DEPTH + 1, values, labels, 4);
}

static int make_profile(const char *service, unsigned samples, uint64_t seed, struct buf *ret)
{
	struct pprof_mapping_info m = { 0x400000, 0x600000, 0, "/usr/lib/program", "aabbccddeeff00112233", true, false, false, false };
	char owner[80];
	struct pprof_builder *p;
	struct buf raw = { 0 };
	uint32_t mapping;
	int err;

	snprintf(owner, sizeof(owner), "[service %s]", service);
	p = pprof_builder_new(owner);
	if (!p)
		return -ENOMEM;
	mapping = pprof_add_mapping(p, &m);
	pprof_set_time(p, 1700000000000000000, 10000000000);
	for (unsigned i = 0; i < samples; i++)
		add_sample(p, mapping, service, &seed);
	err = pprof_encode(p, &raw);
	if (!err)
		err = pprof_gzip(raw.data, raw.len, ret);
	pprof_builder_free(p);
	buf_free(&raw);
	return err;
}

int batches_make(struct batches *b, unsigned services, unsigned samples)
{
	memset(b, 0, sizeof(*b));
	b->services = services;
	b->samples = samples;
	b->pool = calloc((size_t)services * POOL, sizeof(*b->pool));
	b->names = calloc(services, sizeof(*b->names));
	if (!b->pool || !b->names)
		return -ENOMEM;
	for (unsigned s = 0; s < services; s++)
		snprintf(b->names[s], sizeof(b->names[s]), "shop/service-%u/main", s);
	for (unsigned i = 0; i < services * POOL; i++) {
		int err = make_profile(b->names[i % services], samples, i, &b->pool[i]);

		if (err)
			return err;
	}
	return 0;
}

void batches_free(struct batches *b)
{
	for (unsigned i = 0; b->pool && i < b->services * POOL; i++)
		buf_free(&b->pool[i]);
	free(b->pool);
	free(b->names);
	buf_free(&b->bomb);
}

// Samples without anything in them: two bytes each, and gzip makes nearly nothing of them.
static int make_bomb(struct batches *b)
{
	uint8_t *raw;
	int err;

	if (b->bomb.len)
		return 0;
	raw = malloc(BOMB);
	if (!raw)
		return -ENOMEM;
	for (size_t i = 0; i < BOMB; i += 2) {
		raw[i] = 0x12;
		raw[i + 1] = 0;
	}
	err = pprof_gzip(raw, BOMB, &b->bomb);
	free(raw);
	return err;
}

static int encode(struct batches *b, const char *node, const uint8_t instance[16], uint64_t sequence, uint64_t start, uint64_t end,
		  bool bomb, struct buf *ret)
{
	struct batch_profile *profiles = calloc(b->services + 1, sizeof(*profiles));
	struct batch batch = { .kind = BATCH_WINDOW, .node = node, .sequence = sequence, .start = start, .end = end,
			       .n_profiles = b->services, .profiles = profiles };
	int err;

	if (!profiles)
		return -ENOMEM;
	memcpy(batch.instance, instance, sizeof(batch.instance));
	for (unsigned s = 0; s < b->services; s++) {
		const struct buf *p = &b->pool[(sequence * 7 + instance[0] + s) % POOL * b->services + s];

		profiles[s] = (struct batch_profile){ b->names[s], p->data, p->len };
	}
	if (bomb)
		profiles[batch.n_profiles++] = (struct batch_profile){ "bomb", b->bomb.data, b->bomb.len };
	err = batch_encode(&batch, ret);
	free(profiles);
	return err;
}

int batches_encode(struct batches *b, const char *node, const uint8_t instance[16], uint64_t sequence, uint64_t start, uint64_t end,
		   enum bad bad, struct buf *ret)
{
	static const uint8_t zeros[4096];
	int err = bad == BAD_BOMB ? make_bomb(b) : 0;

	if (!err)
		err = encode(b, bad == BAD_NODE ? "somebody-else" : node, instance, sequence, start, end, bad == BAD_BOMB, ret);
	if (err)
		return err;
	switch (bad) {
	case BAD_GARBAGE:
		memset(ret->data, 'x', ret->len);
		break;
	case BAD_VERSION:
		ret->data[4] = ret->data[6] = 99;
		break;
	case BAD_BROKEN:
		memset(ret->data + MESSAGE_HEADER_SIZE, 0xa5, ret->len - MESSAGE_HEADER_SIZE);
		break;
	case BAD_TRUNCATED:
		ret->len = MESSAGE_HEADER_SIZE + (ret->len - MESSAGE_HEADER_SIZE) / 2;
		break;
	case BAD_OVERSIZED:
		while (ret->len <= BATCH_BYTES_MAX + 65536 && !ret->error)
			buf_append(ret, zeros, sizeof(zeros));
		break;
	default:
		break;
	}
	return ret->error;
}
