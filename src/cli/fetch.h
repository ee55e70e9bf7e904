// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_CLI_FETCH_H
#define BLKPROF_CLI_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

bool fetch_is_url(const char *text);
// The address without user and password, to be freed; NULL without memory.
char *fetch_display(const char *url);
// Writes the body of a GET to fd, at most max bytes. A token is the password in the address (Basic). A redirection to
// another host is followed without it.
int fetch(const char *url, int fd, uint64_t max, struct error *e);

#endif
