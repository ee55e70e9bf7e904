// SPDX-License-Identifier: Apache-2.0
// CURVE keys. As text a key is 64 hexadecimal digits: unlike Z85 they mean nothing to shells and configuration files.
#ifndef BLKPROF_WIRE_KEYS_H
#define BLKPROF_WIRE_KEYS_H

#include <stdint.h>

#include "common/error.h"

#define KEY_SIZE 32
#define KEY_TEXT (2 * KEY_SIZE + 1)

struct key_pair {
	uint8_t secret[KEY_SIZE], public[KEY_SIZE];
};

// -ENOTSUP where libzmq was built without CURVE.
int key_pair_generate(struct key_pair *ret, struct error *e);
void key_pair_clear(struct key_pair *k); // wipes the secret

void key_text(const uint8_t key[KEY_SIZE], char ret[KEY_TEXT]);
int key_parse(const char *text, uint8_t ret[KEY_SIZE], struct error *e);

// The file holds the secret key on a line, mode 0600; it is synced. -EEXIST: nothing is ever overwritten.
int key_file_write(const char *path, const struct key_pair *k, struct error *e);
// -EACCES also for a file that others may read or change, -EBADMSG for one that holds no key.
int key_file_read(const char *path, struct key_pair *ret, struct error *e);

#endif
