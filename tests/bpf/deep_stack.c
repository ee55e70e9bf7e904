// SPDX-License-Identifier: Apache-2.0
// Reads a file with O_DIRECT from DEPTH calls below main. Arguments: FILE DEPTH COUNT
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int dive(int fd, void *buffer, int depth, int count);

__attribute__((noinline)) int dive(int fd, void *buffer, int depth, int count)
{
	volatile int failed = 0; // no tail call: each level keeps its frame

	if (depth > 0)
		failed = dive(fd, buffer, depth - 1, count);
	for (int i = 0; depth == 0 && i < count; i++)
		failed |= pread(fd, buffer, 4096, i * 4096) != 4096;
	return failed;
}

int main(int argc, char **argv)
{
	void *buffer;
	int fd;

	if (argc != 4)
		return 2;
	fd = open(argv[1], O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0 || posix_memalign(&buffer, 4096, 4096))
		return 1;
	return dive(fd, buffer, atoi(argv[2]), atoi(argv[3]));
}
