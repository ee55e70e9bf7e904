#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=300
"""A file system whose programs were profiled can be unmounted shortly after they ended, while the recording goes on; what
they did is still named."""
import os
import shutil
import subprocess
import time

from lib import devices, testing
from lib.blkprof import Recording
from lib.load import ioload_args
from lib.pprof import OPS
from lib.testing import check, check_equal, wait_for

COUNT = 503


def unmounts(point):
    return not subprocess.run(["umount", point], stderr=subprocess.DEVNULL).returncode


def programs_file_system_goes():
    with testing.scratch() as folder, devices.zram("64M") as disk:
        with devices.small_fs(folder, 32) as (point, node):
            program = os.path.join(point, "ioload")
            shutil.copy(devices.program("ioload"), program)
            os.sync()
            with Recording(folder, "--rate", "0", "--cpu", "99") as recording:
                args = ioload_args(disk, "read_index:pread:count=%d,rate=300" % COUNT)
                devices.sh(program, *args[1:], timeout=60)
                begin = time.monotonic()
                wait_for(lambda: unmounts(point), "the file system to be let go", timeout=30)
                print("   unmounted %.1f s after the program's end" % (time.monotonic() - begin))
                devices.sh("mount", node, point)
                time.sleep(1)
                profile = recording.stop()
        read = profile.select(frame="read_index", device=os.path.basename(disk))
        check_equal(read.total(OPS), COUNT, "operations of the program from the file system that was unmounted")
        check(read.select(frame="main").total(OPS) == COUNT, "its stack does not reach main")


testing.main(programs_file_system_goes)
