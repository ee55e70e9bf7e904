// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_CLI_FETCH_H
#define BLKPROF_CLI_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

bool fetch_is_url(const char *text);
// The address without user and password, to be freed; NULL without memory.
char *fetch_display(const char *url);
// A GET with what a server may ask for; each NULL where it is not needed.
struct fetch_request {
	const char *token;	   // Authorization: Bearer
	const char *ca, *cert, *key; // PEM files: whom to trust, and who we are
	uint64_t max;		   // bytes of the body
	unsigned patience;	   // seconds
	char note[256];		   // out: the header X-Blkprof-Note, "" = none
};
// Appends the body to `to`. -ENODATA: the server says 404, that there is nothing.
int fetch_to(const char *url, struct fetch_request *r, struct buf *to, struct error *e);
// Appends "?NAME=VALUE" or "&NAME=VALUE" to an address that is being made; not where value is NULL.
void fetch_add(struct buf *url, const char *name, const char *value);

// Writes the body of a GET to fd, at most max bytes. A token is the password in the address (Basic). A redirection to
// another host is followed without it.
int fetch(const char *url, int fd, uint64_t max, struct error *e);

#endif
