// SPDX-License-Identifier: Apache-2.0
// What a collector counts: every message that is not stored has a cause.
#ifndef BLKPROF_COLLECTOR_COUNTERS_H
#define BLKPROF_COLLECTOR_COUNTERS_H

#include "common/metrics.h"

struct collector_counters {
	uint64_t received, received_bytes;
	uint64_t stored, duplicates;
	uint64_t malformed;    // no message of ours, or of several parts
	uint64_t broken;       // a batch that does not hold what it should
	uint64_t bad_profile;  // one whose profiles the store refuses
	uint64_t no_room;      // for more of a node: store.h
	uint64_t bombs;	       // or that would become too large when decompressed
	uint64_t version;      // of a newer agent
	uint64_t unknown_key, wrong_node; // of messages
	uint64_t handshakes_refused;	  // of connections, for their key
	uint64_t put_off;      // answered "later", because the store failed
	uint64_t commits, commit_errors, commit_ns;
	uint64_t accepted, disconnected, accept_errors, handshakes_failed;
	uint64_t cut_idle, cut_stuffed, cut_malformed; // connections that we ended
	uint64_t connections;  // now
	// Requests on their way into Solr.
	uint64_t solr_documents, solr_bytes, solr_updates, solr_update_errors;
	// Documents that are not there: refused, too late, of the index itself; and rows of the store.
	uint64_t solr_aside, solr_dropped, solr_itself, solr_damaged;
	uint64_t solr_waiting, solr_failing;
	uint64_t reloads, reload_errors, allowed_keys;
};

extern const struct metric collector_metrics[];
extern const unsigned collector_metrics_n;

#endif
