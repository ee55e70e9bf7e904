// SPDX-License-Identifier: Apache-2.0
#include "collector/store_db.h"

#include <errno.h>
#include <string.h>

static int code_of(int sqlite)
{
	switch (sqlite & 0xff) {
	case SQLITE_FULL: return -ENOSPC;
	case SQLITE_CORRUPT:
	case SQLITE_FORMAT:
	case SQLITE_NOTADB: return -EBADMSG;
	case SQLITE_BUSY:
	case SQLITE_LOCKED: return -EBUSY;
	case SQLITE_READONLY: return -EROFS;
	case SQLITE_NOMEM: return -ENOMEM;
	case SQLITE_CANTOPEN: return -ENOENT;
	case SQLITE_PERM:
	case SQLITE_AUTH: return -EACCES;
	case SQLITE_TOOBIG: return -EFBIG;
	case SQLITE_INTERRUPT: return -EINTR;
	default: return -EIO;
	}
}

static const char *advice(int code)
{
	switch (code) {
	case -ENOSPC: return "; the disk is full: nothing of this was kept; make room or lower [store] max_size";
	case -EBADMSG: return "; the file is damaged: see what is wrong with 'blkprof collector --check', move it away or restore it";
	case -EBUSY: return "; another program holds it locked";
	case -EROFS: return "; it cannot be written by this user, or the file system is read-only";
	case -EIO: return "; see the kernel's log for errors of its disk";
	default: return "";
	}
}

int db_error(sqlite3 *db, const char *what, struct error *e)
{
	int sqlite = sqlite3_extended_errcode(db), code = code_of(sqlite);
	int system = sqlite3_system_errno(db);

	// A write error that is a full disk comes as one of I/O on some file systems.
	if (code == -EIO && (system == ENOSPC || system == EDQUOT))
		code = -ENOSPC;
	return error_set(e, code, "cannot %s the store: %s%s", what, sqlite3_errmsg(db), advice(code));
}

int db_exec(sqlite3 *db, const char *sql, const char *what, struct error *e)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_error(db, what, e);
}

int db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct error *e)
{
	return sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL) == SQLITE_OK ? 0 : db_error(db, "read", e);
}

int db_step(sqlite3_stmt *st, const char *what, struct error *e)
{
	int sqlite = sqlite3_step(st);

	if (sqlite == SQLITE_ROW)
		return 1;
	return sqlite == SQLITE_DONE ? 0 : db_error(sqlite3_db_handle(st), what, e);
}

int db_run(sqlite3_stmt *st, const char *what, struct error *e)
{
	int r = db_step(st, what, e);

	sqlite3_reset(st);
	return r < 0 ? r : 0;
}

int db_number(sqlite3 *db, const char *sql, int64_t *ret, struct error *e)
{
	sqlite3_stmt *st;
	int r = db_prepare(db, sql, &st, e);

	if (r)
		return r;
	r = db_step(st, "read", e);
	if (r > 0)
		*ret = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return r > 0 ? 0 : r ? r : -ENODATA;
}
