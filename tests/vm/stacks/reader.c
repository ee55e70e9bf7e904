// SPDX-License-Identifier: Apache-2.0
// reader DEVICE COUNT: direct reads below a few functions; compiled without frame pointers.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK 4096

__attribute__((noinline)) static ssize_t read_block(int fd, void *buffer, off_t block)
{
	ssize_t n = pread(fd, buffer, BLOCK, block * BLOCK);

	__asm__ volatile("" ::: "memory"); // no tail call
	return n;
}

__attribute__((noinline)) static long scan_part(int fd, void *buffer, long from, long to)
{
	long sum = 0;

	for (long i = from; i < to; i++)
		sum += read_block(fd, buffer, i % 16384) == BLOCK;
	return sum;
}

__attribute__((noinline)) static long scan_table(int fd, void *buffer, long count)
{
	return scan_part(fd, buffer, 0, count / 2) + scan_part(fd, buffer, count / 2, count);
}

int main(int argc, char **argv)
{
	void *buffer = aligned_alloc(BLOCK, BLOCK);
	long count = argc == 3 ? atol(argv[2]) : 0;
	int fd = argc == 3 ? open(argv[1], O_RDONLY | O_DIRECT) : -1;

	return fd < 0 || !buffer || !count || scan_table(fd, buffer, count) != count;
}
