// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "agent/ship_internal.h"

uint64_t ship_flight_add(struct ship_flight *f, const struct spool_item *item)
{
	struct ship_sent *s = &f->sent[f->n++];

	s->token = ++f->token;
	memcpy(s->instance, item->instance, sizeof(s->instance));
	s->sequence = item->sequence;
	s->size = item->size;
	f->bytes += item->size;
	return s->token;
}

bool ship_flight_take(struct ship_flight *f, uint64_t token, struct ship_sent *ret)
{
	for (unsigned i = 0; i < f->n; i++) {
		if (f->sent[i].token != token)
			continue;
		*ret = f->sent[i];
		f->bytes -= ret->size;
		f->n--;
		memmove(&f->sent[i], &f->sent[i + 1], (f->n - i) * sizeof(f->sent[0]));
		return true;
	}
	return false;
}

void ship_flight_clear(struct ship_flight *f)
{
	f->n = 0;
	f->bytes = 0;
}
