// SPDX-License-Identifier: Apache-2.0
// Names of threads as real programs give them (cut at 15 bytes as the kernel cuts them), and their stems.
#include "agent/service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/text.h"

struct pair {
	const char *in, *out;
};

static const struct pair stems[] = {
	// JVM, HotSpot's own
	{ "GC Thread#0", "GC Thread#" }, { "GC Thread#12", "GC Thread#" }, { "G1 Conc#0", "G1 Conc#" },
	{ "G1 Refine#3", "G1 Refine#" }, { "G1 Main Marker", "G1 Main Marker" }, { "G1 Service", "G1 Service" },
	{ "VM Thread", "VM Thread" }, { "VM Periodic Tas", "VM Periodic Tas" }, { "C2 CompilerThre", "C2 CompilerThre" },
	{ "C1 CompilerThre", "C1 CompilerThre" }, { "XWorker#3", "XWorker#" }, { "ZWorker#11", "ZWorker#" },
	{ "Reference Handl", "Reference Handl" }, { "Signal Dispatch", "Signal Dispatch" }, { "Attach Listener", "Attach Listener" },
	// Java programs: Jetty and Solr, Tomcat, executors, Netty, Kafka, Cassandra, Elasticsearch
	{ "qtp730923082-65", "qtp-" }, { "qtp73092308-6", "qtp-" }, { "pool-1-thread-1", "pool-thread-" },
	{ "pool-10-thread-", "pool-thread-" }, { "Thread-12", "Thread-" }, { "http-nio-8080-e", "http-nio-e" },
	{ "catalina-exec-1", "catalina-exec-" }, { "ForkJoinPool-1-", "ForkJoinPool-" }, { "ForkJoinPool.co", "ForkJoinPool.co" },
	{ "nioEventLoopGro", "nioEventLoopGro" }, { "searcherExecuto", "searcherExecuto" }, { "Lucene Merge Th", "Lucene Merge Th" },
	{ "commitScheduler", "commitScheduler" }, { "Log4j2-TF-1-Asy", "Log4j2-TF-Asy" }, { "kafka-request-h", "kafka-request-h" },
	{ "ReadStage-3", "ReadStage-" }, { "MutationStage-1", "MutationStage-" }, { "elasticsearch[n", "elasticsearch[n" },
	{ "[write][T#3]", "[write][T#]" }, { "XNIO-1 task-7", "XNIO-task-" },
	// databases
	{ "postgres", "postgres" }, { "mysqld", "mysqld" }, { "ib_io_rd-1", "ib_io_rd-" }, { "ib_io_wr-3", "ib_io_wr-" },
	{ "ib_pg_flush-1", "ib_pg_flush-" }, { "ib_pg_flush_co", "ib_pg_flush_co" }, { "ib_log_writer", "ib_log_writer" },
	{ "ib_srv_wkr-2", "ib_srv_wkr-" }, { "xpl_worker-1", "xpl_worker-" }, { "connection", "connection" },
	{ "conn1234", "conn" }, { "conn7", "conn" }, { "WTCheck.tThread", "WTCheck.tThread" }, { "rocksdb:low0", "rocksdb:low" },
	{ "rocksdb:high12", "rocksdb:high" }, { "reactor-7", "reactor-" }, { "io_thd_1", "io_thd_" },
	{ "bio_close_file", "bio_close_file" }, { "jemalloc_bg_thd", "jemalloc_bg_thd" }, { "BgSchPool", "BgSchPool" },
	// others
	{ "nginx", "nginx" }, { "node", "node" }, { "libuv-worker", "libuv-worker" }, { "tokio-runtime-w", "tokio-runtime-w" },
	{ "tokio-rt-worker", "tokio-rt-worker" }, { "rayon-3", "rayon-" }, { "actix-rt|system", "actix-rt|system" },
	{ "asyncio_0", "asyncio_" }, { ".NET TP Worker", ".NET TP Worker" }, { "gmain", "gmain" }, { "worker12", "worker" },
	{ "worker1", "worker" }, { "pool12-thread-3", "pool-thread-" }, { "queue3:src", "queue:src" }, { "iou-wrk-4711", "iou-wrk-" },
	{ "iou-sqp-4711", "iou-sqp-" }, { "StyleThread#0", "StyleThread#" }, { "CPU 0/KVM", "CPU KVM" }, { "CPU 11/KVM", "CPU KVM" },
	{ "Thread-1 (run)", "Thread-(run)" }, { "runc:[2:INIT]", "runc:[INIT]" }, { "memfd:sealed-91", "memfd:sealed-" },
	{ "nfsiod", "nfsiod" }, { "0x7f", "0x7f" }, { "1st", "1st" },
	{ "dump20251130x", "dumpx" }, { "x12345y", "xy" }, { "x1234y", "x1234y" },
	// the number is part of the name
	{ "python3", "python3" }, { "python3.11", "python3.11" }, { "php-fpm8.2", "php-fpm8.2" }, { "sqlite3", "sqlite3" },
	{ "bzip2", "bzip2" }, { "fsck.ext4", "fsck.ext4" }, { "lz4", "lz4" }, { "md5sum", "md5sum" }, { "sha256sum", "sha256sum" },
	{ "e2fsck", "e2fsck" }, { "jbd2", "jbd2" }, { "iperf3", "iperf3" }, { "lua5.4", "lua5.4" },
	// nothing else is left
	{ "1234", "1234" }, { "-", "-" }, { "", "" }, { "12-34", "12-34" },
	// kernel threads
	{ "kworker/u8:2-fl", "kworker/" }, { "kworker/u8:2-writeback", "kworker/" }, { "kworker/R-xfsal", "kworker/" },
	{ "jbd2/vda1-8", "jbd2/" }, { "jbd2/dm-0-8", "jbd2/" }, { "xfsaild/sda1", "xfsaild/" }, { "ksoftirqd/0", "ksoftirqd/" },
	{ "dmcrypt_write/2", "dmcrypt_write/" }, { "dmcrypt_write/254:0", "dmcrypt_write/" }, { "irq/24-nvme0q1", "irq/" },
	{ "md127_raid1", "md_raid1" }, { "md0_resync", "md_resync" }, { "loop0", "loop" }, { "kswapd0", "kswapd" },
	{ "f2fs_gc-254:0", "f2fs_gc-" }, { "z_wr_iss_3", "z_wr_iss_" }, { "scsi_eh_0", "scsi_eh_" }, { "kdamond.0", "kdamond." },
	{ "btrfs-transacti", "btrfs-transacti" },
};

static const struct pair kinds[] = {
	{ "kworker/u8:2-flush-254:0", "kworker" }, { "kworker/u8:2-fl", "kworker" }, { "kworker/R-write", "kworker" },
	{ "kworker/1:1H-kblockd", "kworker" }, { "jbd2/dm-0-8", "jbd2" }, { "jbd2/vda1-8", "jbd2" }, { "md127_raid1", "md" },
	{ "md0_raid5", "md" }, { "md0_resync", "md" }, { "xfsaild/sda1", "xfsaild" }, { "xfs-cil/dm-0", "xfs-cil" },
	{ "loop0", "loop" }, { "loop12", "loop" }, { "ksoftirqd/0", "ksoftirqd" }, { "dmcrypt_write/2", "dmcrypt_write" },
	{ "kcryptd", "kcryptd" }, { "kcryptd/254:1", "kcryptd" }, { "kswapd0", "kswapd" }, { "kcompactd1", "kcompactd" },
	{ "khugepaged", "khugepaged" }, { "f2fs_gc-254:0", "f2fs_gc" }, { "f2fs_flush-8:17", "f2fs_flush" },
	{ "btrfs-cleaner", "btrfs-cleaner" }, { "btrfs-transacti", "btrfs-transacti" }, { "drbd_w_r0", "drbd" }, { "drbd_s_data", "drbd" },
	{ "nbd0-recv", "nbd" }, { "rbd3-tasks", "rbd" }, { "scsi_eh_0", "scsi_eh" }, { "z_wr_iss_3", "z_wr_iss" },
	{ "txg_sync", "txg_sync" }, { "vhost-4711", "vhost" }, { "irq/24-nvme0q1", "irq" }, { "nfsd", "nfsd" },
	{ "rcu_exp_par_gp_", "rcu_exp_par_gp" }, { "bcache_gc", "bcache_gc" }, { "oom_reaper", "oom_reaper" },
	{ "kdamond.0", "kdamond" }, { "mdadm", "mdadm" }, { "loopback", "loopback" }, { "nvme-wq", "nvme-wq" }, { "", "" },
	{ "123", "123" }, { "/x", "/x" },
};

static void check_stems(void **state)
{
	char out[64];

	for (size_t i = 0; i < sizeof(stems) / sizeof(*stems); i++) {
		thread_stem(stems[i].in, out, sizeof(out));
		if (strcmp(out, stems[i].out))
			fail_msg("'%s' is '%s', not '%s'", stems[i].in, out, stems[i].out);
	}
}

static void check_kinds(void **state)
{
	char out[64];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		kernel_thread_kind(kinds[i].in, out, sizeof(out));
		if (strcmp(out, kinds[i].out))
			fail_msg("'%s' is '%s', not '%s'", kinds[i].in, out, kinds[i].out);
	}
}

// A stem is a stem: the diff of two windows compares what may have been through the rule twice.
static void stable(void **state)
{
	char once[64], twice[64];

	for (size_t i = 0; i < sizeof(stems) / sizeof(*stems); i++) {
		thread_stem(stems[i].in, once, sizeof(once));
		thread_stem(once, twice, sizeof(twice));
		if (strcmp(once, twice))
			fail_msg("'%s' becomes '%s'", once, twice);
	}
}

static void hostile(void **state)
{
	static const char *const names[] = { "\xff\xfe", "a\x01\x1f-3", "\xc3", "qtp\xe4\xbd", "\xe4\xbd\xa0\xe5\xa5\xbd-7", "\n\n", "-----" };
	char long_name[600], out[16];

	memset(long_name, '7', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = 0;
	thread_stem(long_name, out, sizeof(out));
	assert_int_equal(strlen(out), 15);
	kernel_thread_kind(long_name, out, sizeof(out));
	assert_int_equal(strlen(out), 15);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		thread_stem(names[i], out, sizeof(out));
		assert_true(text_is_utf8(out, strlen(out)));
		kernel_thread_kind(names[i], out, sizeof(out));
		assert_true(text_is_utf8(out, strlen(out)));
	}
	thread_stem("\xe4\xbd\xa0\xe5\xa5\xbd-7", out, sizeof(out));
	assert_string_equal(out, "\xe4\xbd\xa0\xe5\xa5\xbd-");
	thread_stem("qtp730923082-65", out, 3);
	assert_string_equal(out, "qt");
	thread_stem("x", out, 1);
	assert_string_equal(out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_stems), cmocka_unit_test(check_kinds), cmocka_unit_test(stable), cmocka_unit_test(hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
