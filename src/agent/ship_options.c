// SPDX-License-Identifier: Apache-2.0
// What a ship is told: endpoint lines; and the names of its counters.
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "agent/ship.h"
#include "wire/address.h"

int ship_endpoint_parse(const char *text, bool insecure, struct ship_endpoint *ret, struct error *e)
{
	struct ship_endpoint p = { 0 };
	size_t len = strcspn(text, " \t");
	const char *key = text + len + strspn(text + len, " \t");
	int err;

	if (len >= sizeof(p.address))
		return error_set(e, -EINVAL, "the endpoint's address is too long");
	memcpy(p.address, text, len);
	err = address_check(p.address, e);
	if (err)
		return err;
	if (*key) {
		p.curve = true;
		if (key_parse(key, p.server_key, e))
			return error_prefix(e, -EINVAL, "endpoint %.80s: the public key behind the address", p.address);
	} else if (!insecure && !address_is_local(p.address)) {
		return error_set(e, -EINVAL, "endpoint %.100s leaves this machine without encryption: put the collector's public key "
				 "behind the address, or say insecure = yes", p.address);
	}
	*ret = p;
	return 0;
}

#define M(field, name, labels, help, type) { "blkprof_ship_" name, labels, help, type, offsetof(struct ship_stats, field) }

const struct metric ship_metrics[] = {
	M(sent, "sent_total", NULL, "Batches handed to the network, repetitions included.", METRIC_COUNTER),
	M(sent_bytes, "sent_bytes_total", NULL, "Bytes of them.", METRIC_COUNTER),
	M(stored, "answers_total", "status=\"stored\"", "Answers of collectors to batches.", METRIC_COUNTER),
	M(duplicates, "answers_total", "status=\"duplicate\"", NULL, METRIC_COUNTER),
	M(refused, "answers_total", "status=\"refused\"", NULL, METRIC_COUNTER),
	M(unauthorized, "answers_total", "status=\"unauthorized\"", NULL, METRIC_COUNTER),
	M(version, "answers_total", "status=\"version\"", NULL, METRIC_COUNTER),
	M(busy, "answers_total", "status=\"busy\"", NULL, METRIC_COUNTER),
	M(again, "again_total", NULL, "Batches without an answer when their connection ended.", METRIC_COUNTER),
	M(connects, "connects_total", NULL, "Connections that worked.", METRIC_COUNTER),
	M(failures, "failures_total", NULL, "Connections that failed or were given up.", METRIC_COUNTER),
	M(unacknowledged, "unacknowledged", NULL, "Batches on their way.", METRIC_GAUGE),
	M(connected, "connected", NULL, "1 while there is a connection to a collector.", METRIC_GAUGE),
	M(endpoint, "endpoint", NULL, "Which endpoint is used, from 0.", METRIC_GAUGE),
};
const unsigned ship_metrics_n = sizeof(ship_metrics) / sizeof(*ship_metrics);
