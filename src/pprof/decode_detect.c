// SPDX-License-Identifier: Apache-2.0
// What people hand to a reader of profiles that is none: each gets its name instead of a broken field.
#include <errno.h>
#include <string.h>

#include "pprof/decode_internal.h"

struct known {
	const char *start;
	size_t len;
	const char *what;
};

#define STARTS(text, what) { text, sizeof(text) - 1, what }
#define LEGACY "a legacy text profile of gperftools or an old Go; `go tool pprof -proto` converts it"
#define PAGE "a page (HTML or XML), not a profile; was it fetched without a token, or from a wrong address?"

static const struct known list[] = {
	STARTS("heap profile:", LEGACY),
	STARTS("heap_v2/", LEGACY),
	STARTS("goroutine profile:", LEGACY),
	STARTS("threadcreate profile:", LEGACY),
	STARTS("--- contention", LEGACY),
	STARTS("--- mutex", LEGACY),
	STARTS("--- heapz", LEGACY),
	STARTS("--- growthz", LEGACY),
	STARTS("--- threadz", LEGACY),
	STARTS("--- symbol", LEGACY),
	STARTS("--- profile", LEGACY),
	STARTS("--- Memory map", LEGACY),
	STARTS("MAPPED_LIBRARIES:", LEGACY),
	STARTS("PERFILE2", "a recording of perf(1), not a pprof profile; perf_to_profile converts it"),
	STARTS("\x7f" "ELF", "an ELF program or core file, not a profile"),
	STARTS("\x28\xb5\x2f\xfd", "compressed with zstd; decompress it first"),
	STARTS("\xfd" "7zXZ", "compressed with xz; decompress it first"),
	STARTS("BZh", "compressed with bzip2; decompress it first"),
	STARTS("PK\x03\x04", "a ZIP archive; unpack it first"),
	STARTS("\x1f\x8b", "gzip within gzip; decompress it once first"),
	STARTS("{", "JSON, not a pprof profile (speedscope and Chrome write such files)"),
	STARTS("[", "JSON, not a pprof profile"),
	STARTS("<", PAGE),
	STARTS("\xef\xbb\xbf", "a text file, not a profile"),
	STARTS("# ", "a text file, not a profile"),
	STARTS("404 ", "the text of an HTTP error, not a profile"),
};

// The legacy CPU format: words 0, 3, 0 of 32 or 64 bits in either byte order.
static int legacy_cpu(const uint8_t *p, size_t len)
{
	static const char *const starts[] = {
		"\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0",
		"\0\0\0\0\3\0\0\0\0\0\0", "\0\0\0\0\0\0\0\3\0\0\0",
	};

	for (size_t i = 0; i < 4; i++) {
		size_t n = i < 2 ? 24 : 12;

		if (len >= n && !memcmp(p, starts[i], n))
			return 1;
	}
	return 0;
}

// Folded stacks and the like: the first line is all text. A profile begins with a tag, whose length byte or the bytes
// behind it are not text for long.
static int all_text(const uint8_t *p, size_t len)
{
	size_t n = len < 64 ? len : 64;

	for (size_t i = 0; i < n; i++)
		if ((p[i] < 0x20 && p[i] != '\n' && p[i] != '\t' && p[i] != '\r') || p[i] >= 0x7f)
			return 0;
	return n >= 8;
}

int decode_detect(struct stream *s, struct error *e)
{
	size_t len;
	int err = stream_need(s, 64, e);

	if (err)
		return err;
	len = (size_t)(s->end - s->p);
	if (!len)
		return error_set(e, -EBADMSG, s->gzip ? "it is empty: gzip with nothing in it" : "it is empty");
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		if (len >= list[i].len && !memcmp(s->p, list[i].start, list[i].len))
			return error_set(e, -EBADMSG, "byte 0: it is %s", list[i].what);
	if (legacy_cpu(s->p, len))
		return error_set(e, -EBADMSG, "byte 0: it is a legacy CPU profile of gperftools; `go tool pprof -proto` converts it");
	if (all_text(s->p, len))
		return error_set(e, -EBADMSG, "byte 0: it is text, not a pprof profile");
	return 0;
}
