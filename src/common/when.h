// SPDX-License-Identifier: Apache-2.0
// Points in time as users give them: RFC 3339 ("2026-11-30T08:15:00Z", "2026-11-30T08:15:00.5+01:00", a blank for the T),
// seconds since the epoch with a fraction ("1796000000.25"), "now", or relative to now ("-15m", "-1.5h"; the units are
// those of text_duration, seconds without one).
#ifndef BLKPROF_COMMON_WHEN_H
#define BLKPROF_COMMON_WHEN_H

#include <stdint.h>

#include "common/error.h"

// Nanoseconds since the epoch, 1970 to 2262. `what` names the value in the message; -EINVAL or -ERANGE.
int when_parse(const char *text, uint64_t now, const char *what, uint64_t *ret, struct error *e);
// "FROM..TO", FROM before TO.
int when_range(const char *text, uint64_t now, const char *what, uint64_t *ret_from, uint64_t *ret_to, struct error *e);
// RFC 3339 in UTC, with as many digits of a fraction as it needs; out has WHEN_SIZE bytes.
#define WHEN_SIZE 40
const char *when_text(uint64_t ns, char *out);

#endif
