// SPDX-License-Identifier: Apache-2.0
// Text in double quotes, as JSON and Prometheus' labels have it.
#ifndef BLKPROF_COMMON_QUOTE_H
#define BLKPROF_COMMON_QUOTE_H

#include "common/buf.h"

// Appends `text` (len bytes; a NUL ends it) with its quotes. What is no UTF-8 and control characters become '?'.
void quote_append(struct buf *to, const char *text, size_t len);

#endif
