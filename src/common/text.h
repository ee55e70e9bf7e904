// SPDX-License-Identifier: Apache-2.0
// Text from outside: numbers parsed whole and range-checked, UTF-8 made valid, thread names collapsed to their pool.
#ifndef BLKPROF_COMMON_TEXT_H
#define BLKPROF_COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

// The whole text is one unsigned decimal number in [min, max]; else -EINVAL or -ERANGE with a message that names `what`.
int text_number(const char *text, uint64_t min, uint64_t max, const char *what, uint64_t *ret, struct error *e);
// A duration: a decimal number (with fraction) and ms, s (the default), m, h, d. Nanoseconds.
int text_duration(const char *text, const char *what, uint64_t *ret_ns, struct error *e);
// A size: a number and B (default), K, M, G, KiB, MiB, GiB. Bytes.
int text_size(const char *text, const char *what, uint64_t *ret, struct error *e);

// Copies at most cap-1 bytes of `in` (len bytes; a NUL ends it), with every byte that is not part of valid UTF-8 and
// every control character replaced by '?', never cut inside a character. Always terminated. Returns the length.
size_t text_sanitize(char *out, size_t cap, const char *in, size_t len);
bool text_ends_with(const char *text, const char *end); // and has something in front of it
bool text_is_utf8(const char *in, size_t len);

// Human form of bytes ("1.5 MiB"), nanoseconds ("2.3 ms"), counts ("12,345").
const char *text_bytes(char *out, size_t cap, double bytes);
const char *text_time(char *out, size_t cap, double ns);
const char *text_count(char *out, size_t cap, uint64_t n);

#endif
