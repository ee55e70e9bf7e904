// SPDX-License-Identifier: Apache-2.0
// A small profile of the shape that recordings have; its totals are constants that the tests repeat.
#ifndef TESTS_PPROF_SAMPLE_PROFILE_H
#define TESTS_PPROF_SAMPLE_PROFILE_H

#include "pprof/builder.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

// Totals: 7 operations, 9,500,000 ns, 24576 bytes read, 8192 written, 3 ms of CPU.
static inline struct pprof_builder *sample_profile(void)
{
	struct pprof_builder *b = pprof_builder_new("[node db1]");
	struct pprof_mapping_info app = { 0x400000, 0x500000, 0x1000, "/usr/bin/app", "aabbccdd", true, true, true, true };
	struct pprof_line_info inlined[] = { { "ReadPage", "_Z8ReadPagePv", "page.cc", 12 },
					     { "Scan", "_Z4Scanv", "scan.cc", 40 } };
	struct pprof_line_info commit = { "commit\xff\x01<wal>\"&", NULL, NULL, 0 };
	struct pprof_label_info read[] = { { "comm", "app", 0, NULL },	    { "device", "sda", 0, NULL },
					   { "op", "read", 0, NULL },	    { "pid", NULL, 4711, NULL },
					   { "bytes", NULL, 8192, "bytes" }, { "latency", NULL, 0, "nanoseconds" } };
	struct pprof_label_info write[] = { { "comm", "app", 0, NULL }, { "device", "sda", 0, NULL },
					    { "op", "write", 0, NULL }, { "pid", NULL, 0, NULL },
					    { "latency", NULL, 5000000, "nanoseconds" } };
	struct pprof_label_info cpu = { "comm", "app", 0, NULL };
	int64_t first[PPROF_TYPES] = { 2, 1500000, 16384, 0, 0 }, again[PPROF_TYPES] = { 1, 1000000, 8192, 0, 0 };
	int64_t written[PPROF_TYPES] = { 4, 7000000, 0, 8192, 0 }, busy[PPROF_TYPES] = { 0, 0, 0, 0, 3000000 };
	int64_t nothing[PPROF_TYPES] = { 0 };
	uint32_t mapping = pprof_add_mapping(b, &app), root = pprof_add_frame(b, "app");
	uint32_t scan = pprof_add_location(b, mapping, 0x401234, inlined, 2);
	uint32_t wal = pprof_add_location(b, mapping, 0x405678, &commit, 1);
	uint32_t reading[] = { scan, root }, writing[] = { wal, root };

	pprof_add_sample(b, reading, 2, first, read, ARRAY_LEN(read));
	pprof_add_sample(b, writing, 2, written, write, ARRAY_LEN(write));
	pprof_add_sample(b, reading, 2, again, read, ARRAY_LEN(read));
	pprof_add_sample(b, reading, 2, busy, &cpu, 1);
	pprof_add_sample(b, writing, 2, nothing, &cpu, 1);
	pprof_add_comment(b, "backend=%s", "tracepoint");
	pprof_set_time(b, 1700000000000000000, 10000000000);
	return b;
}

#endif
