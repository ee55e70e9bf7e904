// SPDX-License-Identifier: Apache-2.0
#include "cli/requests_table.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/text.h"

#define HANDLERS_MAX 1024
#define HANDLERS_SHOWN 20
#define MOSTLY_MAX 120
#define MOSTLY_WIDTH 26
#define SHARE_SHOWN 0.1

struct mean {
	double sum;
	uint64_t of; // requests of which it is known
};

struct handler {
	char name[220];
	uint64_t requests;
	double longest;
	struct mean duration, io, oncpu, lock;
};

struct requests_table {
	unsigned limit, n, n_handlers;
	struct requests_row **rows; // slowest first; as pointers, which are moved for each that comes between
	uint64_t unkept;	    // for want of memory
	struct handler handlers[HANDLERS_MAX];
	uint64_t requests;
	bool incomplete, stops;
};

struct requests_table *requests_table_new(unsigned slowest)
{
	struct requests_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->limit = slowest;
	t->rows = calloc(slowest + 1, sizeof(*t->rows));
	if (t->rows)
		return t;
	free(t);
	return NULL;
}

void requests_table_free(struct requests_table *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < t->n; i++)
		free(t->rows[i]);
	free(t->rows);
	free(t);
}

// Names and targets are a client's choice: a terminal must not obey them.
static void print_text(FILE *to, const char *text, const char *end)
{
	char clean[sizeof(((struct requests_row *)0)->target)];

	text_sanitize(clean, sizeof(clean), text, strlen(text));
	fprintf(to, "%s%s", clean, end);
}

static void add_known(struct mean *m, double ms, uint64_t requests)
{
	if (ms < 0)
		return;
	m->sum += ms;
	m->of += requests;
}

static double mean(const struct mean *m)
{
	return m->of ? m->sum / (double)m->of : -1;
}

static struct handler *handler_of(struct requests_table *t, const struct requests_row *row)
{
	char name[sizeof(t->handlers[0].name)];
	unsigned i;

	snprintf(name, sizeof(name), "%s%s%s%s%s", row->method, *row->method ? " " : "", row->core, *row->core ? " " : "",
		 *row->handler ? row->handler : "?");
	for (i = 0; i < t->n_handlers; i++)
		if (!strcmp(t->handlers[i].name, name))
			return &t->handlers[i];
	if (i == HANDLERS_MAX - 1)
		snprintf(name, sizeof(name), "(others)");
	if (i == HANDLERS_MAX)
		return &t->handlers[i - 1];
	memcpy(t->handlers[i].name, name, sizeof(name));
	t->n_handlers++;
	return &t->handlers[i];
}

void requests_table_add_sum(struct requests_table *t, const struct requests_row *row)
{
	struct handler *h = handler_of(t, row);
	double longest = row->requests > 1 ? row->longest : row->duration;

	t->requests += row->requests;
	h->requests += row->requests;
	add_known(&h->duration, row->duration, row->requests);
	add_known(&h->io, row->io, row->requests);
	add_known(&h->oncpu, row->oncpu, row->requests);
	add_known(&h->lock, row->lock, row->requests);
	if (longest > h->longest)
		h->longest = longest;
}

void requests_table_add(struct requests_table *t, const struct requests_row *row)
{
	requests_table_add_sum(t, row);
	requests_table_add_row(t, row);
}

// Behind all that took as long.
static unsigned place_of(const struct requests_table *t, double duration)
{
	unsigned from = 0, to = t->n;

	while (from < to) {
		unsigned middle = from + (to - from) / 2;

		if (t->rows[middle]->duration < duration)
			to = middle;
		else
			from = middle + 1;
	}
	return from;
}

void requests_table_add_row(struct requests_table *t, const struct requests_row *row)
{
	unsigned at = place_of(t, row->duration);
	struct requests_row *kept;

	t->incomplete |= row->incomplete;
	t->stops |= row->stopped > 0;
	if (at >= t->limit)
		return;
	kept = t->n == t->limit ? t->rows[--t->n] : malloc(sizeof(*kept));
	if (!kept) {
		t->unkept++;
		return;
	}
	*kept = *row;
	memmove(&t->rows[at + 1], &t->rows[at], (t->n - at) * sizeof(*t->rows));
	t->rows[at] = kept;
	t->n++;
}

static void add_share(char *text, const char *name, double share, const struct requests_row *row)
{
	size_t len = strlen(text);
	bool disk = !strcmp(name, "disk") && *row->device;
	char device[sizeof(row->device)];

	text_sanitize(device, sizeof(device), row->device, strlen(row->device));
	snprintf(text + len, MOSTLY_MAX - len, "%s%.0f%% %s%s%s", len ? ", " : "", 100 * (share < 1 ? share : 1), name, disk ? " " : "",
		 disk ? device : "");
}

static void print_ms(FILE *to, double ms)
{
	if (ms < 0)
		fprintf(to, "%9s", "?");
	else if (ms >= 1e10)
		fprintf(to, "%8.0es", ms / 1000);
	else if (ms >= 10000)
		fprintf(to, "%8.1fs", ms / 1000);
	else
		fprintf(to, "%9.2f", ms);
}

// What share of its time went where: the largest, and the next one where it counts.
static void print_mostly(const struct requests_row *row, FILE *to)
{
	const struct {
		const char *name;
		double ms;
	} part[] = { { "disk", row->disk }, { "CPU", row->oncpu }, { "queue", row->runq }, { "locks", row->lock }, { "client", row->client },
		     { "network", row->net }, { "poll", row->poll }, { "pipes", row->pipe }, { "sleep", row->sleep }, { "other", row->other } };
	const unsigned n = sizeof(part) / sizeof(*part);
	char text[MOSTLY_MAX] = "";
	unsigned first = 0, second = n;

	for (unsigned i = 1; i < n; i++)
		first = part[i].ms > part[first].ms ? i : first;
	for (unsigned i = 0; i < n; i++)
		if (i != first && (second == n || part[i].ms > part[second].ms))
			second = i;
	if (row->duration > 0 && part[first].ms > 0)
		add_share(text, part[first].name, part[first].ms / row->duration, row);
	if (*text && part[second].ms >= SHARE_SHOWN * row->duration)
		add_share(text, part[second].name, part[second].ms / row->duration, row);
	fprintf(to, "%-*s ", MOSTLY_WIDTH, *text ? text : "?");
}

static void print_row(const struct requests_row *row, bool stops, FILE *to)
{
	time_t s = (time_t)(row->start / 1000000000u);
	struct tm tm;
	char text[16];

	localtime_r(&s, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	fprintf(to, "%s.%03u", text, (unsigned)(row->start / 1000000u % 1000u));
	print_ms(to, row->duration);
	print_ms(to, row->io);
	print_ms(to, row->oncpu);
	print_ms(to, row->runq);
	print_ms(to, row->lock);
	print_ms(to, row->client);
	if (stops)
		print_ms(to, row->stopped);
	fprintf(to, " %6d%s ", row->status, row->incomplete ? "*" : " ");
	print_mostly(row, to);
	if (*row->host)
		print_text(to, row->host, " ");
	print_text(to, *row->method ? row->method : "?", " ");
	print_text(to, *row->target ? row->target : "?", "\n");
}

static int by_duration(const void *a, const void *b)
{
	const struct handler *x = a, *y = b;

	return x->duration.sum > y->duration.sum ? -1 : x->duration.sum < y->duration.sum;
}

static void print_handlers(const struct requests_table *t, const char *by, FILE *to)
{
	struct handler *sorted = malloc(sizeof(t->handlers));
	unsigned n = t->n_handlers < HANDLERS_SHOWN ? t->n_handlers : HANDLERS_SHOWN;

	if (!sorted)
		return;
	memcpy(sorted, t->handlers, sizeof(t->handlers));
	qsort(sorted, t->n_handlers, sizeof(*sorted), by_duration);
	fprintf(to, "\n%9s%9s%9s%9s%9s%9s  by %s: means, and the longest, in ms\n", "requests", "mean", "longest", "I/O", "CPU", "locks",
		by);
	for (unsigned i = 0; i < n; i++) {
		const struct handler *h = &sorted[i];

		fprintf(to, "%9llu", (unsigned long long)h->requests);
		print_ms(to, mean(&h->duration));
		print_ms(to, h->longest);
		print_ms(to, mean(&h->io));
		print_ms(to, mean(&h->oncpu));
		print_ms(to, mean(&h->lock));
		fprintf(to, "  ");
		print_text(to, h->name, "\n");
	}
	free(sorted);
}

void requests_table_print(const struct requests_table *t, const char *by, FILE *to)
{
	if (t->n) {
		fprintf(to, "%-12s%9s%9s%9s%9s%9s%9s%s %6s  %-*s the slowest requests; times in ms\n", "started", "took", "I/O", "CPU", "queue", "locks",
			"client", t->stops ? "  stopped" : "", "status", MOSTLY_WIDTH, "mostly");
		for (unsigned i = 0; i < t->n; i++)
			print_row(t->rows[i], t->stops, to);
		if (t->unkept)
			fprintf(to, "%llu more had no room in memory\n", (unsigned long long)t->unkept);
		if (t->incomplete)
			fprintf(to, "* something of it was not seen; ? is not known (--json says what)\n");
	}
	if (t->n_handlers)
		print_handlers(t, by, to);
}

uint64_t requests_table_requests(const struct requests_table *t)
{
	return t->requests;
}
