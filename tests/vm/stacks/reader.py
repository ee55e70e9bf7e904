# SPDX-License-Identifier: Apache-2.0
# reader.py DEVICE COUNT: reads that the page cache does not have.
import os
import sys
import time

fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)


def read_index(n):
    return os.pread(fd, 4096, n * 4096)


def serve():
    for n in range(int(sys.argv[2])):
        read_index(n)
        if n == 20:
            time.sleep(10)  # an emulated machine takes long to compile the interpreter's tables


serve()
