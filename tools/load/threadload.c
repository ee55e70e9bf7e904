// SPDX-License-Identifier: Apache-2.0
// threadload MODE NUMBER NUMBER [FILE]: threads that do something known. It waits for a line on standard input, starts its
// threads, says "done" when they have done their work and sleep, and ends at the end of its input.
//   hogs N MS            N threads burn MS of CPU each, on one CPU
//   convoy N ROUNDS      N threads take a lock ROUNDS times each, for 200 us of CPU
//   pipeline N ROUNDS    N threads hand a token round ROUNDS times, by semaphores
//   pingpong N ROUNDS    N pairs of threads on one CPU each answer each other ROUNDS times, by pipes
//   keepalive N REQUESTS a server of an acceptor and four workers; N clients, of another process, on a connection each
//   connect N REQUESTS   the same, a connection for each request
// A server's worker reads 16 KiB of FILE, past the page cache, for each request when it is given.
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 256
#define WORKERS 4
#define QUEUE 1024
#define HOLD_NS 200000u
#define READ_BYTES 16384

struct job {
	unsigned index, n, rounds;
	bool keep;
	const char *file;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t tokens[THREADS_MAX];
static int pipes[THREADS_MAX][2][2];
static sem_t finished;
static int queue[QUEUE];
static unsigned queue_in, queue_out;
static sem_t queued;

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void burn(uint64_t ns)
{
	uint64_t end = cpu_ns() + ns;

	while (cpu_ns() < end)
		;
}

static void stay_on(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void sleep_on(void)
{
	sem_post(&finished);
	for (;;)
		pause();
}

static void call(const char *name, unsigned i)
{
	char text[16];

	snprintf(text, sizeof(text), "%s-%u", name, i);
	pthread_setname_np(pthread_self(), text);
}

static void *hog(void *arg)
{
	const struct job *j = arg;

	call("hog", j->index);
	stay_on(0);
	burn((uint64_t)j->rounds * 1000000);
	sleep_on();
	return NULL;
}

static void *convoy(void *arg)
{
	const struct job *j = arg;

	call("convoy", j->index);
	for (unsigned i = 0; i < j->rounds; i++) {
		pthread_mutex_lock(&lock);
		burn(HOLD_NS);
		pthread_mutex_unlock(&lock);
	}
	sleep_on();
	return NULL;
}

static void *stage(void *arg)
{
	const struct job *j = arg;

	call("stage", j->index);
	for (unsigned i = 0; i < j->rounds; i++) {
		sem_wait(&tokens[j->index]);
		sem_post(&tokens[(j->index + 1) % j->n]);
	}
	sleep_on();
	return NULL;
}

static void *ping(void *arg)
{
	const struct job *j = arg;
	unsigned pair = j->index / 2, side = j->index % 2;
	char byte = 0;

	call(side ? "pong" : "ping", pair);
	stay_on(pair % (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
	for (unsigned i = 0; i < j->rounds; i++) {
		if (side ? read(pipes[pair][0][0], &byte, 1) != 1 : write(pipes[pair][0][1], &byte, 1) != 1)
			break;
		if (side ? write(pipes[pair][1][1], &byte, 1) != 1 : read(pipes[pair][1][0], &byte, 1) != 1)
			break;
	}
	sleep_on();
	return NULL;
}

// ---- the server

static void enqueue(int fd)
{
	pthread_mutex_lock(&lock);
	queue[queue_in++ % QUEUE] = fd;
	pthread_mutex_unlock(&lock);
	sem_post(&queued);
}

static int dequeue(void)
{
	int fd;

	sem_wait(&queued);
	pthread_mutex_lock(&lock);
	fd = queue[queue_out++ % QUEUE];
	pthread_mutex_unlock(&lock);
	return fd;
}

static void serve(const struct job *j, int fd, int file, void *page)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	char request[256];

	while (read(fd, request, sizeof(request)) > 0) {
		burn(HOLD_NS);
		if (file >= 0 && pread(file, page, READ_BYTES, (off_t)(rand() % 256) * READ_BYTES) < 0)
			perror("pread");
		if (write(fd, answer, sizeof(answer) - 1) < 0 || !j->keep)
			break;
	}
	close(fd);
}

static void *worker(void *arg)
{
	const struct job *j = arg;
	int file = j->file ? open(j->file, O_RDONLY | O_DIRECT) : -1;
	void *page = NULL;

	call("worker", j->index);
	if (posix_memalign(&page, 4096, READ_BYTES))
		exit(1);
	for (;;)
		serve(j, dequeue(), file, page);
	return NULL;
}

static void *acceptor(void *arg)
{
	const int *listener = arg;
	int fd;

	call("acceptor", 0);
	while ((fd = accept(*listener, NULL, NULL)) >= 0)
		enqueue(fd);
	return NULL;
}

static int connect_to(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof(*to)))
		exit(1);
	return fd;
}

static void client(const struct job *j, const struct sockaddr_in *to)
{
	static const char request[] = "GET /page HTTP/1.1\r\nHost: x\r\n\r\n";
	char answer[256];
	int fd = -1;

	for (unsigned i = 0; i < j->rounds; i++) {
		if (fd < 0)
			fd = connect_to(to);
		if (write(fd, request, sizeof(request) - 1) < 0 || read(fd, answer, sizeof(answer)) <= 0)
			exit(1);
		if (j->keep)
			continue;
		close(fd);
		fd = -1;
	}
	exit(0);
}

static void run_server(struct job *jobs, const struct job *j)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	static int listener;
	pthread_t thread;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 128) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		exit(1);
	for (unsigned i = 0; i < j->n; i++)
		if (!fork())
			client(j, &at);
	sem_init(&queued, 0, 0);
	pthread_create(&thread, NULL, acceptor, &listener);
	for (unsigned i = 0; i < WORKERS; i++) {
		jobs[i] = *j;
		jobs[i].index = i;
		pthread_create(&thread, NULL, worker, &jobs[i]);
	}
	for (unsigned i = 0; i < j->n; i++)
		if (wait(NULL) < 0)
			exit(1);
}

// ---- all

static const struct mode {
	const char *name;
	void *(*run)(void *arg);
	unsigned threads; // for each of N
} modes[] = { { "hogs", hog, 1 }, { "convoy", convoy, 1 }, { "pipeline", stage, 1 }, { "pingpong", ping, 2 } };

static void run_threads(const struct mode *m, struct job *jobs, const struct job *j)
{
	pthread_t thread;

	for (unsigned i = 0; i < j->n; i++)
		if (sem_init(&tokens[i], 0, !i) || pipe(pipes[i][0]) || pipe(pipes[i][1]))
			exit(1);
	for (unsigned i = 0; i < j->n * m->threads; i++) {
		jobs[i] = *j;
		jobs[i].index = i;
		pthread_create(&thread, NULL, m->run, &jobs[i]);
	}
	for (unsigned i = 0; i < j->n * m->threads; i++)
		sem_wait(&finished);
}

int main(int argc, char **argv)
{
	static struct job jobs[THREADS_MAX];
	const struct mode *mode = NULL;
	struct job j = { 0 };
	char line[16];

	if (argc < 4)
		return 2;
	j.n = (unsigned)atoi(argv[2]);
	j.rounds = (unsigned)atoi(argv[3]);
	j.file = argc > 4 ? argv[4] : NULL;
	j.keep = !strcmp(argv[1], "keepalive");
	for (unsigned i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(argv[1], modes[i].name))
			mode = &modes[i];
	if (!j.n || j.n * 2 > THREADS_MAX || (!mode && !j.keep && strcmp(argv[1], "connect")))
		return 2;
	signal(SIGPIPE, SIG_IGN);
	sem_init(&finished, 0, 0);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	if (mode)
		run_threads(mode, jobs, &j);
	else
		run_server(jobs, &j);
	puts("done");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		;
	exit(0);
}
