// SPDX-License-Identifier: Apache-2.0
#include "collector/store_watch.h"

#include <errno.h>

#include "common/text.h"

#define STEPS 4000 // of SQLite's machine, between two questions

static int on_progress(void *watch)
{
	return watch_ask(watch, NULL) != 0;
}

void watch_db(struct watch *w, sqlite3 *db)
{
	if (w->limits && w->limits->go_on)
		sqlite3_progress_handler(db, STEPS, on_progress, w);
}

int watch_ask(struct watch *w, struct error *e)
{
	if (!w->err && w->limits && w->limits->go_on)
		w->err = w->limits->go_on(w->limits->context, &w->why);
	return watch_end(w, w->err, e);
}

int watch_memory(struct watch *w, size_t used, struct error *e)
{
	char text[32];

	if (!w->limits || !w->limits->memory || used <= w->limits->memory)
		return 0;
	w->err = error_set(&w->why, -E2BIG, "the answer takes more than %s of memory: ask for a shorter time, or for one node or service",
			   text_bytes(text, sizeof(text), (double)w->limits->memory));
	return watch_end(w, w->err, e);
}

int watch_end(const struct watch *w, int err, struct error *e)
{
	if (!err || !w->err)
		return err;
	if (e)
		*e = w->why;
	return w->err;
}
