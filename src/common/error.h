// SPDX-License-Identifier: Apache-2.0
// What went wrong, in one line that a user can act on: what failed, why, what to do.
#ifndef BLKPROF_COMMON_ERROR_H
#define BLKPROF_COMMON_ERROR_H

struct error {
	char text[512];
};

// Writes the text (truncated to the struct) and returns code, so that `return error_set(e, -EINVAL, "…")` works.
// e may be NULL. code is a negative errno.
int error_set(struct error *e, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

// Puts "PREFIX: " in front of what is there already; returns code.
int error_prefix(struct error *e, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
