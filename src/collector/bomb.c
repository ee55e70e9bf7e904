// SPDX-License-Identifier: Apache-2.0
#include "collector/bomb.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>

struct bomb_check {
	struct libdeflate_decompressor *inflate;
	uint8_t *room; // PROFILE_INFLATED_MAX, of which only what was needed is ever touched
};

struct bomb_check *bomb_check_new(void)
{
	struct bomb_check *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->inflate = libdeflate_alloc_decompressor();
	c->room = malloc(PROFILE_INFLATED_MAX);
	if (c->inflate && c->room)
		return c;
	bomb_check_free(c);
	return NULL;
}

void bomb_check_free(struct bomb_check *c)
{
	if (!c)
		return;
	if (c->inflate)
		libdeflate_free_decompressor(c->inflate);
	free(c->room);
	free(c);
}

// A file may have several members.
static int inflated_size(struct bomb_check *c, const struct batch_profile *p, size_t *ret, struct error *e)
{
	const uint8_t *from = p->data;
	size_t left = p->size, total = 0, in, out;

	while (left) {
		switch (libdeflate_gzip_decompress_ex(c->inflate, from, left, c->room, PROFILE_INFLATED_MAX - total, &in, &out)) {
		case LIBDEFLATE_SUCCESS:
			break;
		case LIBDEFLATE_INSUFFICIENT_SPACE:
			return error_set(e, -EFBIG, "the profile of service %.100s has more than %u MiB when decompressed", p->service,
					 PROFILE_INFLATED_MAX >> 20);
		default:
			return error_set(e, -EBADMSG, "the profile of service %.100s is no gzip file", p->service);
		}
		total += out;
		from += in;
		left -= in;
	}
	*ret = total;
	return 0;
}

int bomb_check_batch(struct bomb_check *c, const struct batch *b, struct error *e)
{
	size_t total = 0, size = 0;

	for (unsigned i = 0; i < b->n_profiles; i++) {
		int err = inflated_size(c, &b->profiles[i], &size, e);

		if (err)
			return err;
		total += size;
		if (total > BATCH_INFLATED_MAX)
			return error_set(e, -EFBIG, "the profiles have more than %u MiB when decompressed", BATCH_INFLATED_MAX >> 20);
	}
	return 0;
}
