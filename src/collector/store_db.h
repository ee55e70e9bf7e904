// SPDX-License-Identifier: Apache-2.0
// SQLite with our errors: negative errno and a line that says what to do.
#ifndef BLKPROF_COLLECTOR_STORE_DB_H
#define BLKPROF_COLLECTOR_STORE_DB_H

#include <sqlite3.h>
#include <stdint.h>

#include "common/error.h"

// -ENOSPC disk full, -EBADMSG damaged, -EBUSY, -EROFS, -EIO, -ENOMEM …; `what` is what was being done.
int db_error(sqlite3 *db, const char *what, struct error *e);
int db_exec(sqlite3 *db, const char *sql, const char *what, struct error *e);
int db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct error *e);
// One step: 1 a row, 0 done, or an error.
int db_step(sqlite3_stmt *st, const char *what, struct error *e);
// A statement that yields no rows (or whose rows are not wanted), then reset.
int db_run(sqlite3_stmt *st, const char *what, struct error *e);
// The only number of the only row; -ENODATA when there is none.
int db_number(sqlite3 *db, const char *sql, int64_t *ret, struct error *e);

#endif
