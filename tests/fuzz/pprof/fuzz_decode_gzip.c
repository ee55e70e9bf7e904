// SPDX-License-Identifier: Apache-2.0
// The first byte says how: 0 = the bytes are a gzip file; else they are compressed first and the result is damaged.
#include "decode_all.h"
#include "pprof/builder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct buf gz = { 0 };

	if (len < 4)
		return 0;
	if (!data[0]) {
		decode_all(data + 1, len - 1);
		return 0;
	}
	if (!pprof_gzip(data + 4, len - 4, &gz)) {
		if (data[0] & 1)
			gz.data[(data[1] << 8 | data[2]) % gz.len] ^= data[3];
		if (data[0] & 2)
			gz.len -= data[3] % gz.len;
		decode_all(gz.data, gz.len);
	}
	buf_free(&gz);
	return 0;
}
