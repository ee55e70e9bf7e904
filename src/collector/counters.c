// SPDX-License-Identifier: Apache-2.0
#include "collector/counters.h"

#include <stddef.h>

#define M(field, name, labels, help, type) { "blkprof_collector_" name, labels, help, type, offsetof(struct collector_counters, field) }

const struct metric collector_metrics[] = {
	M(received, "messages_total", NULL, "Messages of agents.", METRIC_COUNTER),
	M(received_bytes, "messages_bytes_total", NULL, "Bytes of them.", METRIC_COUNTER),
	M(stored, "batches_total", "result=\"stored\"", "Batches that were acknowledged.", METRIC_COUNTER),
	M(duplicates, "batches_total", "result=\"duplicate\"", NULL, METRIC_COUNTER),
	M(malformed, "refused_total", "cause=\"malformed\"", "Messages that were not stored.", METRIC_COUNTER),
	M(broken, "refused_total", "cause=\"broken\"", NULL, METRIC_COUNTER),
	M(bad_profile, "refused_total", "cause=\"profile\"", NULL, METRIC_COUNTER),
	M(bombs, "refused_total", "cause=\"bomb\"", NULL, METRIC_COUNTER),
	M(no_room, "refused_total", "cause=\"no_room\"", NULL, METRIC_COUNTER),
	M(version, "refused_total", "cause=\"version\"", NULL, METRIC_COUNTER),
	M(unknown_key, "refused_total", "cause=\"unknown_key\"", NULL, METRIC_COUNTER),
	M(wrong_node, "refused_total", "cause=\"wrong_node\"", NULL, METRIC_COUNTER),
	M(put_off, "refused_total", "cause=\"store\"", NULL, METRIC_COUNTER),
	M(commits, "commits_total", NULL, "Transactions of the store that became durable.", METRIC_COUNTER),
	M(commit_errors, "commit_errors_total", NULL, "Transactions of the store that failed.", METRIC_COUNTER),
	M(commit_ns, "commit_seconds_total", NULL, "Time spent in transactions.", METRIC_SECONDS_COUNTER),
	M(accepted, "accepted_total", NULL, "Connections.", METRIC_COUNTER),
	M(disconnected, "disconnected_total", NULL, "Connections that ended, those of oversized messages among them.", METRIC_COUNTER),
	M(accept_errors, "accept_errors_total", NULL, "Connections that could not be accepted.", METRIC_COUNTER),
	M(handshakes_refused, "handshakes_refused_total", NULL, "Connections whose key is not allowed.", METRIC_COUNTER),
	M(handshakes_failed, "handshakes_failed_total", NULL, "Connections that failed before they could say anything.", METRIC_COUNTER),
	M(cut_idle, "cut_total", "cause=\"too_many\"", "Connections that the collector ended.", METRIC_COUNTER),
	M(cut_stuffed, "cut_total", "cause=\"endless_message\"", NULL, METRIC_COUNTER),
	M(cut_malformed, "cut_total", "cause=\"malformed\"", NULL, METRIC_COUNTER),
	M(connections, "connections", NULL, "Connections now.", METRIC_GAUGE),
	M(solr_documents, "solr_documents_total", NULL, "Requests that Solr took, those sent again counted again.", METRIC_COUNTER),
	M(solr_bytes, "solr_bytes_total", NULL, "Bytes sent to Solr.", METRIC_COUNTER),
	M(solr_updates, "solr_updates_total", NULL, "Updates sent to Solr.", METRIC_COUNTER),
	M(solr_update_errors, "solr_update_errors_total", NULL, "Updates that Solr did not take.", METRIC_COUNTER),
	M(solr_aside, "solr_not_indexed_total", "cause=\"refused\"", "Requests that are not in Solr and never will be.", METRIC_COUNTER),
	M(solr_dropped, "solr_not_indexed_total", "cause=\"retention\"", NULL, METRIC_COUNTER),
	M(solr_itself, "solr_not_indexed_total", "cause=\"itself\"", NULL, METRIC_COUNTER),
	M(solr_damaged, "solr_damaged_batches_total", NULL, "Batches of requests that the store could not give back.", METRIC_COUNTER),
	M(solr_waiting, "solr_waiting_requests", NULL, "Requests in the store that are not in Solr yet.", METRIC_GAUGE),
	M(solr_failing, "solr_failing", NULL, "1 while requests cannot be indexed.", METRIC_GAUGE),
	M(reloads, "reloads_total", NULL, "Times that the allowed keys were read again.", METRIC_COUNTER),
	M(reload_errors, "reload_errors_total", NULL, "Times that they could not be.", METRIC_COUNTER),
	M(allowed_keys, "allowed_keys", NULL, "Keys that are allowed.", METRIC_GAUGE),
};
const unsigned collector_metrics_n = sizeof(collector_metrics) / sizeof(*collector_metrics);
