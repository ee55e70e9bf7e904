// SPDX-License-Identifier: Apache-2.0
// Writers that are killed, disks that are full, files that are damaged or old.
#include "batches.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>

#include "collector/store_internal.h"
#include "common/file.h"

static int setup(void **state)
{
	*state = make_directory();
	return 0;
}

static int teardown(void **state)
{
	remove_tree(*state);
	free(*state);
	return 0;
}

// Puts batches in groups for ever and tells of each group that is acknowledged.
static void write_for_ever(const char *directory, uint64_t sequence, uint8_t instance, int tell)
{
	struct store *s = open_store_with(directory, false, 0, 0);

	for (;;) {
		struct made m[4];
		const struct batch *list[4];
		int results[4];

		for (unsigned i = 0; i < 4; i++) {
			make_batch(&m[i], "n1", instance, sequence, T0 + sequence * 10 * S, T0 + sequence * 10 * S + 10 * S, 3, sequence, false);
			list[i] = &m[i].b;
			sequence++;
		}
		if (store_put(s, list, 4, results, NULL))
			_exit(1);
		if (write(tell, &sequence, sizeof(sequence)) != sizeof(sequence))
			_exit(1);
		for (unsigned i = 0; i < 4; i++)
			free_batch(&m[i]);
	}
}

// The last sequence that was acknowledged before the writer was killed, + 1. The delay counts from the writer's start or, on a
// busy machine where it would never get that far, from its first acknowledgement.
static uint64_t kill_writer(const char *directory, uint64_t sequence, uint8_t instance, unsigned delay_us, bool once)
{
	uint64_t acknowledged = sequence, got;
	int tell[2];
	pid_t pid;

	assert_int_equal(pipe(tell), 0);
	pid = fork();
	if (!pid) {
		close(tell[0]);
		write_for_ever(directory, sequence, instance, tell[1]);
	}
	close(tell[1]);
	if (once && read(tell[0], &got, sizeof(got)) == sizeof(got))
		acknowledged = got;
	usleep(delay_us);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	while (read(tell[0], &got, sizeof(got)) == sizeof(got))
		acknowledged = got;
	close(tell[0]);
	return acknowledged;
}

static void a_killed_writer_loses_nothing(void **state)
{
	const char *directory = *state;
	uint64_t random = 5, total = 0;
	int64_t sum = 0;

	store_close(open_store_with(directory, false, 0, 0));
	for (unsigned i = 0; i < 30; i++) {
		uint64_t next = kill_writer(directory, 1, (uint8_t)i, 2000 + (unsigned)(next_random(&random) % 60000), i % 3 == 0);
		struct store *s = open_store_with(directory, false, 0, 0);
		struct totals want = { 0 }, t;

		// What was acknowledged is a duplicate; the group that was being written is there as a whole or not at all.
		for (uint64_t q = 1; q < next + 8; q++) {
			struct made m;

			make_batch(&m, "n1", (uint8_t)i, q, T0 + q * 10 * S, T0 + q * 10 * S + 10 * S, 3, q, false);
			assert_true(put_one(s, &m.b) == -EEXIST || q >= next);
			want.v[0] += m.sum.v[0];
			free_batch(&m);
		}
		total += next - 1;
		t = query_totals(s, (struct store_query){ .from = T0, .to = T0 + 86400 * S }, NULL, NULL);
		sum += want.v[0];
		assert_int_equal(t.v[0], sum);
		store_close(s);
	}
	assert_true(total > 0);
}

static void a_full_disk_keeps_nothing_of_a_transaction(void **state)
{
	struct store *s = open_store_with(*state, false, 0, 0);
	struct store_query q = { .from = T0, .to = T0 + 100000 * S };
	struct error e = { 0 };
	struct totals before, after;
	struct made m[8];
	const struct batch *list[8];
	int results[8], err;

	for (unsigned i = 0; i < 8; i++) {
		make_batch(&m[i], "n1", 1, i + 1, T0 + i * 10 * S, T0 + i * 10 * S + 10 * S, i ? 400 : 5, i, false);
		list[i] = &m[i].b;
	}
	assert_int_equal(put_one(s, list[0]), 0);
	before = query_totals(s, q, NULL, NULL);
	pthread_mutex_lock(&s->lock);
	assert_int_equal(db_exec(s->db, "PRAGMA max_page_count = 1", "", NULL), 0); // no page more than there are
	pthread_mutex_unlock(&s->lock);
	err = store_put(s, list, 8, results, &e);
	assert_int_equal(err, -ENOSPC);
	assert_non_null(strstr(e.text, "full"));
	after = query_totals(s, q, NULL, NULL);
	assert_int_equal(after.v[0], before.v[0]);
	pthread_mutex_lock(&s->lock);
	assert_int_equal(db_exec(s->db, "PRAGMA max_page_count = 100000", "", NULL), 0);
	pthread_mutex_unlock(&s->lock);
	assert_int_equal(store_put(s, list, 8, results, &e), 0);
	assert_int_equal(results[0], -EEXIST);
	for (unsigned i = 1; i < 8; i++)
		assert_int_equal(results[i], 0);
	after = query_totals(s, q, NULL, NULL);
	for (unsigned i = 1; i < 8; i++)
		before.v[0] += m[i].sum.v[0];
	assert_int_equal(after.v[0], before.v[0]);
	for (unsigned i = 0; i < 8; i++)
		free_batch(&m[i]);
	store_close(s);
}

static void count_found(void *context, const char *what)
{
	++*(unsigned *)context;
}

static void damage_is_an_error_that_says_so(void **state)
{
	const char *directory = *state;
	struct store_query q = { .from = T0, .to = T0 + 100000 * S };
	struct store *s = open_store_with(directory, false, 0, 0);
	uint64_t random = 9, found = 0;
	unsigned told = 0, failed = 0;
	char *path;
	struct made m;
	struct stat st;

	for (unsigned i = 0; i < 30; i++) {
		make_batch(&m, "n1", 1, i + 1, T0 + i * 10 * S, T0 + i * 10 * S + 10 * S, 60, i, false);
		assert_int_equal(put_one(s, &m.b), 0);
		free_batch(&m);
	}
	assert_int_equal(store_check(s, count_found, &told, &found, NULL), 0);
	assert_int_equal(found, 0);
	store_close(s);
	assert_true(asprintf(&path, "%s/" STORE_FILE, directory) > 0);
	assert_int_equal(stat(path, &st), 0);
	for (unsigned round = 0; round < 40; round++) {
		struct store_options o = { .directory = directory, .read_only = true };
		struct error e = { 0 };
		struct buf gz = { 0 };
		FILE *f = fopen(path, "r+");
		uint8_t old[64], bad[64];
		long at = (long)(next_random(&random) % (uint64_t)(st.st_size - 64));
		int err;

		for (unsigned i = 0; i < sizeof(bad); i++)
			bad[i] = (uint8_t)next_random(&random);
		fseek(f, at, SEEK_SET);
		assert_int_equal(fread(old, 1, 64, f), 64);
		fseek(f, at, SEEK_SET);
		fwrite(bad, 1, 64, f);
		fflush(f);
		err = store_open(&o, &s, &e);
		if (!err) {
			err = store_query(s, &q, &gz, NULL, &e);
			store_check(s, count_found, &told, &found, NULL);
			store_close(s);
		}
		failed += err != 0;
		assert_true(!err || e.text[0]);
		buf_free(&gz);
		fseek(f, at, SEEK_SET);
		fwrite(old, 1, 64, f);
		fclose(f);
	}
	assert_true(failed && told);
	truncate(path, 100);
	assert_int_equal(store_open(&(struct store_options){ .directory = directory }, &s, &(struct error){ "" }), -EBADMSG);
	free(path);
}

static void load_sql(const char *directory, const char *file)
{
	struct buf sql = { 0 };
	char *path;
	sqlite3 *db;

	assert_int_equal(file_read(file, 1 << 20, &sql), 0);
	assert_true(asprintf(&path, "%s/" STORE_FILE, directory) > 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, (char *)sql.data, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	free(path);
	buf_free(&sql);
}

static void an_older_store_is_brought_up_to_date(void **state)
{
	const char *directory = *state;
	struct store_query q = { .from = T0, .to = T0 + 100 * S };
	struct store_options o = { .directory = directory, .read_only = true };
	struct batch requests = { .kind = BATCH_REQUESTS, .node = "n1", .sequence = 2, .start = T0, .end = T0 + S };
	struct error e = { 0 };
	struct store *s;
	struct totals t;
	struct made m;

	load_sql(directory, TEST_DATA "/store/version_1.sql");
	assert_int_equal(store_open(&o, &s, &e), -EPROTO);
	assert_non_null(strstr(e.text, "older version"));
	s = open_store_with(directory, false, 0, 0);
	make_batch(&m, "n1", 1, 1, T0, T0 + 10 * S, 20, 7, true);
	assert_int_equal(put_one(s, &m.b), -EEXIST);
	t = query_totals(s, q, NULL, NULL);
	assert_int_equal(t.v[0], m.sum.v[0]);
	memset(requests.instance, 1, 16);
	assert_int_equal(put_one(s, &requests), 0);
	store_close(s);
	free_batch(&m);
}

static void a_newer_store_is_refused(void **state)
{
	const char *directory = *state;
	struct store_options o = { .directory = directory };
	struct error e = { 0 };
	struct store *s = open_store_with(directory, false, 0, 0);

	assert_int_equal(db_exec(s->db, "PRAGMA user_version = 99", "", NULL), 0);
	store_close(s);
	assert_int_equal(store_open(&o, &s, &e), -EPROTO);
	assert_non_null(strstr(e.text, "newer blkprof"));
}

static void compaction_gives_pages_back(void **state)
{
	const char *directory = *state;
	struct store *s = open_store_with(directory, false, 0, 0);
	uint64_t before = 0, after = 0;
	struct error e;

	for (unsigned i = 0; i < 20; i++) {
		struct made m;

		make_batch(&m, "n1", 1, i + 1, T0 + i * 10 * S, T0 + i * 10 * S + 10 * S, 200, i, false);
		assert_int_equal(put_one(s, &m.b), 0);
		free_batch(&m);
	}
	pthread_mutex_lock(&s->lock);
	assert_int_equal(db_exec(s->db, "DELETE FROM columns", "", NULL), 0);
	pthread_mutex_unlock(&s->lock);
	assert_int_equal(store_compact(directory, &before, &after, &e), 0); // the store is open
	assert_true(after < before);
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_killed_writer_loses_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_disk_keeps_nothing_of_a_transaction, setup, teardown),
		cmocka_unit_test_setup_teardown(damage_is_an_error_that_says_so, setup, teardown),
		cmocka_unit_test_setup_teardown(an_older_store_is_brought_up_to_date, setup, teardown),
		cmocka_unit_test_setup_teardown(a_newer_store_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(compaction_gives_pages_back, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
