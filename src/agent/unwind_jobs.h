// SPDX-License-Identifier: Apache-2.0
// What the thread that compiles tables is told about processes: one job says all that is mapped in a process now, the
// last one about a process counts. Thread-safe.
#ifndef BLKPROF_AGENT_UNWIND_JOBS_H
#define BLKPROF_AGENT_UNWIND_JOBS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define UNWIND_IDENTITY_MAX 192

struct unwind_job_range {
	uint64_t start, limit;
	uint64_t address; // virtual address of start in its file
	int file;	  // index in files, or -1
	uint8_t kind;	  // enum unwind_mapping_kind, where there is no file
};

struct unwind_job_file {
	char identity[UNWIND_IDENTITY_MAX];
	int fd;	   // -1 where it could not be opened
	bool main; // the process's executable: every stack needs it
};

struct unwind_job {
	struct unwind_job *next;
	pid_t pid;
	bool gone;	  // the process has ended
	unsigned slot;	  // where its use is noted
	unsigned n_ranges, n_files;
	struct unwind_job_range *ranges;
	struct unwind_job_file *files;
};

void unwind_job_free(struct unwind_job *job); // closes its files; also NULL

struct unwind_jobs;

struct unwind_jobs *unwind_jobs_new(void);
void unwind_jobs_free(struct unwind_jobs *q);
// Takes over the job, in the place of one about the same process.
void unwind_jobs_put(struct unwind_jobs *q, struct unwind_job *job);
// Waits for the next; NULL after unwind_jobs_end.
struct unwind_job *unwind_jobs_take(struct unwind_jobs *q);
bool unwind_jobs_waiting(struct unwind_jobs *q, pid_t pid); // whether a newer one about the process is there
// Waits until everything that was put is done, or the time is up.
void unwind_jobs_settle(struct unwind_jobs *q, unsigned timeout_ms);
bool unwind_jobs_ended(struct unwind_jobs *q);
void unwind_jobs_end(struct unwind_jobs *q);

#endif
