// SPDX-License-Identifier: Apache-2.0
// Records about the index itself: where the Solr that records go into is followed too, each update would make records that
// make an update, for ever. Updates carry a trace id of ours; the process that has served one, and the core, are known by it.
#ifndef BLKPROF_COLLECTOR_SOLR_ITSELF_H
#define BLKPROF_COLLECTOR_SOLR_ITSELF_H

#include <stdbool.h>
#include <stdint.h>

#include "request/document.h"

#define SOLR_ITSELF_MAX 16
#define SOLR_MARK_MAX 33

struct solr_itself {
	char mark[SOLR_MARK_MAX]; // the updates' trace id
	unsigned n;
	struct solr_itself_process {
		char node[65], core[64];
		int64_t pid;
		uint64_t seen; // ns since the epoch: of the latest update by a record's time
	} process[SOLR_ITSELF_MAX];
};

enum solr_itself_result {
	SOLR_ITSELF_NOT,
	SOLR_ITSELF_IS,
	SOLR_ITSELF_NEW, // it is, and of a process that was not known: process[n - 1]
};

// Is a record of the index itself: of its core, or of a thread of its process? For ten minutes after its latest update: a
// number may be another process's then.
enum solr_itself_result solr_itself(struct solr_itself *s, const char *node, const struct document *d);

#endif
