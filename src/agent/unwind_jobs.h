// SPDX-License-Identifier: Apache-2.0
// What the thread that compiles tables is told about processes: one job says all that is mapped in a process now, the
// last one about a process counts. Jobs share their files, of which few are open at a time. Thread-safe.
#ifndef BLKPROF_AGENT_UNWIND_JOBS_H
#define BLKPROF_AGENT_UNWIND_JOBS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#ifndef HASH_NONFATAL_OOM
#define HASH_NONFATAL_OOM 1
#endif
#include <uthash.h>

#define UNWIND_IDENTITY_MAX 192
#define UNWIND_FILES_OPEN 64 // that wait for their tables

struct unwind_file;

struct unwind_job_range {
	uint64_t start, limit;
	uint64_t address; // virtual address of start in its file
	int file;	  // index in files, or -1
	uint8_t kind;	  // enum unwind_mapping_kind, where there is no file
};

struct unwind_job_file {
	struct unwind_file *file;
	bool main; // the process's executable: every stack needs it
};

struct unwind_job {
	pid_t pid;
	bool gone;	  // the process has ended
	unsigned slot;	  // where its use is noted
	unsigned n_ranges, n_files;
	struct unwind_job_range *ranges;
	struct unwind_job_file *files; // with a hold on each
	UT_hash_handle hh;
};

struct unwind_jobs;

struct unwind_jobs *unwind_jobs_new(void);
void unwind_jobs_free(struct unwind_jobs *q); // jobs that were taken must be gone
// Takes over the job, in the place of one about the same process.
void unwind_jobs_put(struct unwind_jobs *q, struct unwind_job *job);
// Waits for the next; NULL after unwind_jobs_end.
struct unwind_job *unwind_jobs_take(struct unwind_jobs *q);
void unwind_job_free(struct unwind_jobs *q, struct unwind_job *job); // with its holds; also NULL
unsigned unwind_jobs_count(struct unwind_jobs *q);
bool unwind_jobs_waiting(struct unwind_jobs *q, pid_t pid); // whether a newer one about the process is there
// Waits until everything that was put is done, or the time is up.
void unwind_jobs_settle(struct unwind_jobs *q, unsigned timeout_ms);
bool unwind_jobs_ended(struct unwind_jobs *q);
void unwind_jobs_end(struct unwind_jobs *q);

// A hold on a file that is open for other jobs, or whose table was compiled; else NULL.
struct unwind_file *unwind_jobs_find_file(struct unwind_jobs *q, const char *identity);
bool unwind_jobs_files_full(struct unwind_jobs *q);
// A hold on a file. Takes over the descriptor; NULL without memory.
struct unwind_file *unwind_jobs_add_file(struct unwind_jobs *q, const char *identity, int fd);
const char *unwind_file_identity(const struct unwind_file *f);
int unwind_file_fd(struct unwind_jobs *q, struct unwind_file *f); // stays open for a job with a hold; -1 = none
// That there is a table (then the file is closed), or that it was given up.
void unwind_jobs_compiled(struct unwind_jobs *q, const char *identity, bool compiled);

#endif
