// SPDX-License-Identifier: Apache-2.0
#include "decode_all.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	// The layer of gzip has a target of its own.
	if (len < 2 || data[0] != 0x1f)
		decode_all(data, len);
	return 0;
}
