// SPDX-License-Identifier: Apache-2.0
// Opening, creating and migrating the database.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/store_internal.h"
#include "collector/store_maintenance.h"

#define DICT_TABLE(name) \
	"CREATE TABLE " name "(id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, tell INTEGER NOT NULL, until INTEGER NOT NULL, " \
	"body BLOB NOT NULL);" \
	"CREATE INDEX " name "_by_hash ON " name "(hash);"

// Version 1: everything but what migrations below add.
static const char schema_1[] =
	"CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"
	DICT_TABLE("texts") DICT_TABLE("mappings") DICT_TABLE("locations") DICT_TABLE("stacks") DICT_TABLE("labels")
	"CREATE TABLE nodes(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, longest INTEGER NOT NULL);"
	"CREATE TABLE agents(id INTEGER PRIMARY KEY, node INTEGER NOT NULL, instance BLOB NOT NULL, UNIQUE(node, instance));"
	"CREATE TABLE seen(agent INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY(agent, first)) "
	"WITHOUT ROWID;"
	"CREATE TABLE gaps(agent INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, start INTEGER NOT NULL, "
	"end INTEGER NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY(agent, first, last)) WITHOUT ROWID;"
	"CREATE TABLE spans(id INTEGER PRIMARY KEY, level INTEGER NOT NULL, node INTEGER NOT NULL, slot INTEGER NOT NULL, "
	"start INTEGER NOT NULL, end INTEGER NOT NULL, agent INTEGER, sequence INTEGER, labels INTEGER NOT NULL, "
	"services BLOB NOT NULL, notes BLOB, sources BLOB, lossy INTEGER NOT NULL DEFAULT 0, windows INTEGER NOT NULL DEFAULT 1);"
	"CREATE INDEX spans_by_time ON spans(level, node, slot);"
	"CREATE TABLE columns(id INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE pending(level INTEGER NOT NULL, node INTEGER NOT NULL, slot INTEGER NOT NULL, due INTEGER NOT NULL, "
	"PRIMARY KEY(level, node, slot)) WITHOUT ROWID;";

// What each version adds to the one before it.
static const char *const migrations[STORE_VERSION + 1] = {
	[1] = schema_1,
	[2] = "CREATE TABLE requests(id INTEGER PRIMARY KEY, node INTEGER NOT NULL, agent INTEGER NOT NULL, "
	      "sequence INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, body BLOB NOT NULL);"
	      "CREATE INDEX requests_by_time ON requests(node, start);",
	// A number is never given twice, so that a place behind which nothing is indexed yet stays right when rows go; and what
	// goes before it was indexed is counted, whoever deletes it.
	[3] = "CREATE TABLE requests3(id INTEGER PRIMARY KEY AUTOINCREMENT, node INTEGER NOT NULL, agent INTEGER NOT NULL, "
	      "sequence INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, records INTEGER NOT NULL, "
	      "first INTEGER NOT NULL, last INTEGER NOT NULL, slowest REAL NOT NULL, longest REAL NOT NULL, size INTEGER NOT NULL, body BLOB NOT NULL);"
	      "INSERT INTO requests3 SELECT id, node, agent, sequence, start, end, 0, 0, end, 1e308, 1e308, 0, body FROM requests;"
	      "DROP TABLE requests; ALTER TABLE requests3 RENAME TO requests;"
	      "CREATE INDEX requests_by_time ON requests(node, start);"
	      "CREATE INDEX requests_by_last ON requests(last, first);"
	      "CREATE TABLE indexing(one INTEGER PRIMARY KEY CHECK(one = 1), active INTEGER NOT NULL, batch INTEGER NOT NULL, "
	      "record INTEGER NOT NULL, dropped INTEGER NOT NULL, aside INTEGER NOT NULL);"
	      "INSERT INTO indexing VALUES (1, 0, 0, 0, 0, 0);"
	      "CREATE TRIGGER requests_dropped AFTER DELETE ON requests WHEN (SELECT active AND old.id >= batch FROM indexing) "
	      "BEGIN UPDATE indexing SET dropped = dropped + max(0, old.records - iif(old.id = batch, record, 0)); END;",
	[4] = "ALTER TABLE nodes ADD COLUMN entries INTEGER NOT NULL DEFAULT 0;"
	      "UPDATE nodes SET entries = (SELECT count(*) FROM agents WHERE node = nodes.id) + "
	      "(SELECT count(*) FROM seen WHERE agent IN (SELECT id FROM agents WHERE node = nodes.id)) + "
	      "(SELECT count(*) FROM gaps WHERE agent IN (SELECT id FROM agents WHERE node = nodes.id));",
};

static int migrate(sqlite3 *db, int64_t version, struct error *e)
{
	char sql[64];
	int err = db_exec(db, "BEGIN IMMEDIATE", "write to", e);

	for (int64_t v = version + 1; v <= STORE_VERSION && !err; v++)
		err = db_exec(db, migrations[v], "bring to a newer version", e);
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", STORE_VERSION);
	if (!err)
		err = db_exec(db, sql, "bring to a newer version", e);
	if (!err)
		err = db_exec(db, "COMMIT", "bring to a newer version", e);
	if (err && !sqlite3_get_autocommit(db))
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return err;
}

static int read_secret(sqlite3 *db, struct hash_secret *ret, struct error *e)
{
	sqlite3_stmt *st;
	int r = db_prepare(db, "SELECT value FROM meta WHERE name = 'secret'", &st, e);

	if (r)
		return r;
	r = db_step(st, "read", e);
	if (r > 0 && sqlite3_column_bytes(st, 0) == sizeof(*ret))
		memcpy(ret, sqlite3_column_blob(st, 0), sizeof(*ret));
	else if (r >= 0)
		r = r ? error_set(e, -EBADMSG, "the store is damaged: its secret has the wrong size") : -ENODATA;
	sqlite3_finalize(st);
	return r > 0 ? 0 : r;
}

static int make_secret(sqlite3 *db, struct hash_secret *ret, struct error *e)
{
	struct hash_secret s;
	sqlite3_stmt *st;
	int r;

	if (getrandom(&s, sizeof(s), 0) != (ssize_t)sizeof(s))
		return error_set(e, -EIO, "cannot get random bytes: %s", strerror(errno));
	for (unsigned i = 0; i < 4; i++)
		s.k[i] |= 1;
	r = db_prepare(db, "INSERT INTO meta(name, value) VALUES ('secret', ?1)", &st, e);
	if (r)
		return r;
	sqlite3_bind_blob(st, 1, &s, sizeof(s), SQLITE_STATIC);
	r = db_run(st, "write to", e);
	sqlite3_finalize(st);
	if (!r)
		*ret = s;
	return r;
}

static int configure(sqlite3 *db, bool read_only, struct error *e)
{
	int err = db_exec(db, "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;", "open", e);

	sqlite3_busy_timeout(db, 10000);
	if (err || read_only)
		return err;
	// Page size and vacuum mode only count before the first table.
	return db_exec(db,
		       "PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"
		       "PRAGMA synchronous = FULL; PRAGMA cache_size = -32768; PRAGMA journal_size_limit = 67108864;"
		       "PRAGMA wal_autocheckpoint = 2000;",
		       "open", e);
}

int schema_open(sqlite3 *db, bool read_only, struct hash_secret *ret, struct error *e)
{
	int64_t version;
	int err = configure(db, read_only, e);

	if (!err)
		err = db_number(db, "PRAGMA user_version", &version, e);
	if (err)
		return err;
	if (version > STORE_VERSION || version < 0)
		return error_set(e, -EPROTO, "the store was written by a newer blkprof (its version is %lld, this program knows %d): "
					     "use that one",
				 (long long)version, STORE_VERSION);
	if (version < STORE_VERSION && read_only)
		return error_set(e, version ? -EPROTO : -ENODATA,
				 version ? "the store has an older version: start a collector of this program on it once" :
					   "there is nothing in the store yet");
	if (version < STORE_VERSION)
		err = migrate(db, version, e);
	if (!err)
		err = read_secret(db, ret, e);
	if (err == -ENODATA && !read_only)
		err = make_secret(db, ret, e);
	return err == -ENODATA ? error_set(e, -EBADMSG, "the store is damaged: its secret is missing") : err;
}

static int lock_directory(struct store *s, struct error *e)
{
	char *path;

	if (mkdir(s->directory, 0700) && errno != EEXIST)
		return error_set(e, -errno, "cannot create the store's directory %s: %s; make its parent folder or set another directory in [store]",
				 s->directory, strerror(errno));
	if (asprintf(&path, "%s/lock", s->directory) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	free(path);
	if (s->lock_fd < 0)
		return error_set(e, -errno, "cannot write to the store's directory %s: %s", s->directory, strerror(errno));
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB))
		return error_set(e, -EBUSY, "the store %s is in use by another collector: give each its own directory", s->directory);
	return 0;
}

// A store that was just created is there after a power failure too.
static int sync_directory(const char *path, struct error *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), above, err = 0;

	above = fd < 0 ? -1 : openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) || (above >= 0 && fsync(above)))
		err = error_set(e, -errno, "cannot make the store's directory %s durable: %s", path, strerror(errno));
	if (above >= 0)
		close(above);
	if (fd >= 0)
		close(fd);
	return err;
}

static int connect(const char *path, bool read_only, sqlite3 **ret, struct error *e)
{
	int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	int r = sqlite3_open_v2(path, ret, flags | SQLITE_OPEN_NOMUTEX, NULL), err;

	if (r == SQLITE_OK)
		return 0;
	err = *ret ? db_error(*ret, "open", e) : error_set(e, -ENOMEM, "out of memory");
	sqlite3_close(*ret);
	*ret = NULL;
	return err;
}

int store_reader(struct store *s, sqlite3 **ret, struct error *e)
{
	struct hash_secret unused;
	int err = connect(s->path, true, ret, e);

	if (err)
		return err;
	err = schema_open(*ret, true, &unused, e);
	if (!err)
		err = db_exec(*ret, "PRAGMA cache_size = -8192", "open", e);
	if (err) {
		sqlite3_close(*ret);
		*ret = NULL;
	}
	return err;
}

static int check_there(const char *path, struct error *e)
{
	if (!access(path, F_OK))
		return 0;
	return errno == EACCES ? error_set(e, -EACCES, "it cannot be read by this user") :
				 error_set(e, -errno, "there is no store in it: %s", strerror(errno));
}

int store_beside(const char *directory, sqlite3 **ret, struct error *e)
{
	sqlite3 *db = NULL;
	char *path;
	int err = asprintf(&path, "%s/" STORE_FILE, directory) < 0 ? error_set(e, -ENOMEM, "out of memory") : 0;

	if (err)
		return err;
	err = check_there(path, e);
	if (!err && sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		err = db ? db_error(db, "open", e) : error_set(e, -ENOMEM, "out of memory");
	free(path);
	if (err) {
		sqlite3_close(db);
		return err;
	}
	sqlite3_busy_timeout(db, 10000);
	*ret = db;
	return 0;
}

static int open_files(struct store *s, struct error *e)
{
	int err = 0;

	s->directory = strdup(s->options.directory);
	if (!s->directory || asprintf(&s->path, "%s/" STORE_FILE, s->directory) < 0) {
		s->path = NULL;
		return error_set(e, -ENOMEM, "out of memory");
	}
	err = s->options.read_only ? check_there(s->path, e) : lock_directory(s, e);
	if (!err)
		err = connect(s->path, s->options.read_only, &s->db, e);
	if (!err)
		err = schema_open(s->db, s->options.read_only, &s->secret, e);
	return err || s->options.read_only ? err : sync_directory(s->directory, e);
}

static int open_writer(struct store *s, struct error *e)
{
	s->dict = dict_new(s->db, e);
	if (!s->dict)
		return -ENOMEM;
	s->packer = packer_new();
	if (!s->packer)
		return error_set(e, -ENOMEM, "out of memory");
	s->ingest = ingest_new(s, e);
	return s->ingest ? maintenance_new(s, e) : -ENOMEM;
}

int store_open(const struct store_options *options, struct store **ret, struct error *e)
{
	struct store *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return error_set(e, -ENOMEM, "out of memory");
	s->options = *options;
	s->lock_fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->trouble_lock, NULL);
	err = open_files(s, e);
	if (err && s->directory)
		error_prefix(e, err, "%s", s->directory);
	if (!err && !options->read_only)
		err = open_writer(s, e);
	if (err) {
		store_close(s);
		return err;
	}
	*ret = s;
	return 0;
}

void store_size(const struct store *s, uint64_t *ret_file, uint64_t *ret_log)
{
	char log[4096];
	struct stat st;

	*ret_file = stat(s->path, &st) ? 0 : (uint64_t)st.st_size;
	snprintf(log, sizeof(log), "%s-wal", s->path);
	*ret_log = stat(log, &st) ? 0 : (uint64_t)st.st_size;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	maintenance_free(s);
	ingest_free(s->ingest);
	dict_free(s->dict);
	packer_free(s->packer);
	sums_free(&s->sums);
	buf_free(&s->scratch);
	sqlite3_close(s->db);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->trouble_lock);
	free(s->directory);
	free(s->path);
	free(s);
}

int store_begin(struct store *s, struct error *e)
{
	return db_exec(s->db, "BEGIN IMMEDIATE", "write to", e);
}

void store_rollback(struct store *s)
{
	if (!sqlite3_get_autocommit(s->db))
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	dict_forget(s->dict);
}

int store_commit(struct store *s, struct error *e)
{
	int err = db_exec(s->db, "COMMIT", "write to", e);

	if (err)
		store_rollback(s);
	return err;
}
