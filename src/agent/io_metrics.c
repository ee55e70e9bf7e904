// SPDX-License-Identifier: Apache-2.0
#include "agent/io_metrics.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/quote.h"
#include "common/text.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes(key, len, 0))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define SERVICE_TEXT 256
#define HALF_LIFE_S 600
#define INCUMBENT 2 // times as heavy a newcomer must be, so that two of one weight do not take turns

struct service {
	char name[SERVICE_TEXT];
	double weight; // seconds of I/O of late
	bool placed;
	UT_hash_handle hh;
};

struct key {
	char service[SERVICE_TEXT], device[48], op[16];
};

struct cell {
	struct key key;
	struct io_amount amount;
	UT_hash_handle hh;
};

struct io_metrics {
	pthread_mutex_t lock;
	unsigned max_services, max_cells;
	struct service *services;
	struct cell *cells;
	uint64_t displaced, uncounted;
};

struct io_metrics *io_metrics_new(unsigned services, unsigned cells)
{
	struct io_metrics *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->max_services = services ? services : IO_METRICS_SERVICES;
	m->max_cells = cells ? cells : IO_METRICS_CELLS;
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

static void remove_service(struct io_metrics *m, struct service *s)
{
	HASH_DEL(m->services, s);
	free(s);
}

static void remove_cell(struct io_metrics *m, struct cell *c)
{
	HASH_DEL(m->cells, c);
	free(c);
}

void io_metrics_free(struct io_metrics *m)
{
	struct service *s, *next_service;
	struct cell *c, *next_cell;

	if (!m)
		return;
	HASH_ITER(hh, m->services, s, next_service)
		remove_service(m, s);
	HASH_ITER(hh, m->cells, c, next_cell)
		remove_cell(m, c);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static void copy(char *to, size_t cap, const char *text)
{
	if (!text_sanitize(to, cap, text, strlen(text)))
		text_sanitize(to, cap, "[unknown]", 9);
}

static struct service *find_service(const struct io_metrics *m, const char *name)
{
	char clean[SERVICE_TEXT] = "";
	struct service *s;

	copy(clean, sizeof(clean), name);
	HASH_FIND(hh, m->services, clean, sizeof(clean), s);
	return s;
}

static struct service *add_service(struct io_metrics *m, const char *name)
{
	struct service *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	copy(s->name, sizeof(s->name), name);
	HASH_ADD(hh, m->services, name, sizeof(s->name), s);
	if (s->hh.tbl)
		return s;
	free(s);
	return NULL;
}

static void weigh(struct io_metrics *m, const struct io_item *items, unsigned n, double seconds)
{
	double kept = exp2(-seconds / HALF_LIFE_S);

	for (struct service *s = m->services; s; s = s->hh.next)
		s->weight *= kept;
	for (unsigned i = 0; i < n; i++) {
		struct service *s = find_service(m, items[i].service);

		if (!s)
			s = add_service(m, items[i].service);
		if (s)
			s->weight += (double)items[i].amount.time_ns / 1e9;
	}
}

static double rank(const struct service *s)
{
	return s->placed ? s->weight * INCUMBENT : s->weight;
}

static int compare_rank(const struct service *a, const struct service *b)
{
	if (rank(a) != rank(b))
		return rank(a) > rank(b) ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void displace(struct io_metrics *m, const struct service *s)
{
	struct cell *c, *next;

	HASH_ITER(hh, m->cells, c, next)
		if (!strcmp(c->key.service, s->name))
			remove_cell(m, c);
	m->displaced++;
}

static void place(struct io_metrics *m)
{
	struct service *s, *next;
	unsigned n = 0;

	HASH_SORT(m->services, compare_rank);
	HASH_ITER(hh, m->services, s, next) {
		if (n++ < m->max_services) {
			s->placed = true;
			continue;
		}
		if (s->placed)
			displace(m, s);
		remove_service(m, s);
	}
}

static struct cell *cell_of(struct io_metrics *m, const struct key *key)
{
	struct cell *c;

	HASH_FIND(hh, m->cells, key, sizeof(*key), c);
	return c;
}

static struct cell *add_cell(struct io_metrics *m, const struct key *key)
{
	struct cell *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->key = *key;
	HASH_ADD(hh, m->cells, key, sizeof(c->key), c);
	if (c->hh.tbl)
		return c;
	free(c);
	return NULL;
}

static struct cell *cell_for(struct io_metrics *m, const struct io_item *item)
{
	struct key key = { .service = "" };
	struct cell *c;

	copy(key.service, sizeof(key.service), find_service(m, item->service) ? item->service : IO_METRICS_OTHER);
	copy(key.device, sizeof(key.device), item->device);
	copy(key.op, sizeof(key.op), item->op);
	c = cell_of(m, &key);
	if (c || HASH_COUNT(m->cells) < m->max_cells)
		return c ? c : add_cell(m, &key);
	// There are few of these: a service and an operation each.
	memset(key.device, 0, sizeof(key.device));
	copy(key.device, sizeof(key.device), IO_METRICS_OTHER);
	c = cell_of(m, &key);
	return c ? c : add_cell(m, &key);
}

static void count(struct io_metrics *m, const struct io_item *item)
{
	struct cell *c = cell_for(m, item);

	if (!c) {
		m->uncounted += item->amount.ops;
		return;
	}
	c->amount.ops += item->amount.ops;
	c->amount.bytes += item->amount.bytes;
	c->amount.time_ns += item->amount.time_ns;
}

static int compare_cells(const struct cell *a, const struct cell *b)
{
	return memcmp(&a->key, &b->key, sizeof(a->key));
}

void io_metrics_window(struct io_metrics *m, const struct io_item *items, unsigned n, double seconds)
{
	pthread_mutex_lock(&m->lock);
	weigh(m, items, n, seconds);
	place(m);
	for (unsigned i = 0; i < n; i++)
		count(m, &items[i]);
	HASH_SORT(m->cells, compare_cells);
	pthread_mutex_unlock(&m->lock);
}

static void print_text(struct buf *to, const char *label, const char *text)
{
	buf_printf(to, "%s=", label);
	quote_append(to, text, strlen(text));
}

static void print_labels(struct buf *to, const char *name, const struct key *k)
{
	buf_printf(to, "%s{", name);
	print_text(to, "service", k->service);
	print_text(to, ",device", k->device);
	print_text(to, ",op", k->op);
	buf_printf(to, "} ");
}

static void print_head(struct buf *to, const char *name, const char *help)
{
	buf_printf(to, "# HELP %s %s\n# TYPE %s counter\n", name, help, name);
}

static void print_number(struct buf *to, const char *name, const char *help, uint64_t value)
{
	print_head(to, name, help);
	buf_printf(to, "%s %" PRIu64 "\n", name, value);
}

void io_metrics_print(struct io_metrics *m, struct buf *to)
{
	static const char *const names[] = { "blkprof_agent_io_operations_total", "blkprof_agent_io_seconds_total",
					     "blkprof_agent_io_bytes_total" };
	static const char *const helps[] = { "I/O operations in the windows that ended.", "Time that they took.",
					     "Their bytes, those that moved no data (discards) included." };

	pthread_mutex_lock(&m->lock);
	for (unsigned i = 0; i < 3; i++) {
		print_head(to, names[i], helps[i]);
		for (const struct cell *c = m->cells; c; c = c->hh.next) {
			print_labels(to, names[i], &c->key);
			if (i == 1)
				buf_printf(to, "%" PRIu64 ".%09" PRIu64 "\n", c->amount.time_ns / 1000000000,
					   c->amount.time_ns % 1000000000);
			else
				buf_printf(to, "%" PRIu64 "\n", i ? c->amount.bytes : c->amount.ops);
		}
	}
	print_number(to, "blkprof_agent_io_services_displaced_total", "Services that lost their series above to heavier ones.",
		     m->displaced);
	print_number(to, "blkprof_agent_io_uncounted_total", "Operations missing above for want of memory.", m->uncounted);
	pthread_mutex_unlock(&m->lock);
}
