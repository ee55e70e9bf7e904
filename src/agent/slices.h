// SPDX-License-Identifier: Apache-2.0
// One recording for several readers: the windows between cuts, in order, added up to what each reader wants. A reader has
// the number of the slice at which it began; slices between which nobody begins are one.
#ifndef BLKPROF_AGENT_SLICES_H
#define BLKPROF_AGENT_SLICES_H

#include <stddef.h>
#include <stdint.h>

#include "agent/recorder.h"

struct slices;

struct slices *slices_new(void);
void slices_free(struct slices *s); // NULL too
// The number of the slice that has begun with the last cut.
uint64_t slices_next(const struct slices *s);
// Takes over the window of the slice that ends. `starts` are those of the readers; what nobody needs is dropped, what
// nobody tells apart is added up. After -ENOMEM there is none left, and who reads has a gap.
int slices_add(struct slices *s, struct window *w, const uint64_t *starts, unsigned n);
// The window of everything since `from`, for a reader that is not among `starts`, of those that go on; the caller frees
// it. It is copied only when somebody else needs a part of it. -ENODATA when nothing was added since `from`, -ENOMEM.
int slices_take(struct slices *s, uint64_t from, const uint64_t *starts, unsigned n, struct window **ret);
// Drops what none of the starts needs.
int slices_trim(struct slices *s, const uint64_t *starts, unsigned n);
size_t slices_rows(const struct slices *s); // in all of them
void slices_clear(struct slices *s);	    // before the recorder is freed

#endif
