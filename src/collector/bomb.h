// SPDX-License-Identifier: Apache-2.0
// How much the profiles of a batch become when decompressed, before anybody reads them: a megabyte of a bomb is a
// gigabyte that takes the collector seconds.
#ifndef BLKPROF_COLLECTOR_BOMB_H
#define BLKPROF_COLLECTOR_BOMB_H

#include "common/error.h"
#include "wire/batch.h"

#define PROFILE_INFLATED_MAX (8u << 20)
#define BATCH_INFLATED_MAX (64u << 20)

struct bomb_check;

struct bomb_check *bomb_check_new(void); // NULL without memory
void bomb_check_free(struct bomb_check *c);
// -EFBIG: more than the limits. -EBADMSG: it is no gzip file.
int bomb_check_batch(struct bomb_check *c, const struct batch *b, struct error *e);

#endif
