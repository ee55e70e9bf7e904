#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=300
"""Windows as the agent takes them: cut into slices, added up, one profile for each service and one for the node. Nothing is
lost or counted twice between slices, windows and services."""
import glob
import os
import shutil
import subprocess

from lib import devices, testing
from lib.load import Load, ioload_args
from lib.pprof import OPS, READ_BYTES, TIME, Profile
from lib.testing import check, check_equal

SLICE, WINDOWS = 0.5, 3
COUNTS = {"reader-one": 503, "reader-two": 401}


class Windows:
    def __init__(self, folder):
        self.prefix = os.path.join(folder, "window")
        self.process = subprocess.Popen([os.path.join(devices.build(), "tests", "bpf", "record_services"), self.prefix,
                                         str(SLICE), str(WINDOWS), "0"], stdout=subprocess.PIPE, text=True)
        check_equal(self.process.stdout.readline(), "ready\n", "record_services")

    def read(self):
        """[(line of numbers, profile of the node, {service: profile})] by window."""
        rest = self.process.communicate(timeout=120)[0]
        check_equal(self.process.returncode, 0, "status of record_services")
        result = []
        for i, line in enumerate(rest.splitlines()):
            services = [Profile.read(p) for p in glob.glob("%s.%d.*.pb.gz" % (self.prefix, i)) if p.count(".") == 4]
            names = [p.mappings[1]["file"] for p in services]
            check_equal(len(set(names)), len(names), "a service has one profile: %s" % names)
            result.append(([int(n) for n in line.split()], Profile.read("%s.%d.pb.gz" % (self.prefix, i)),
                           dict(zip(names, services))))
        return result


def services_add_up():
    with testing.scratch() as folder, devices.zram("64M") as disk:
        programs = {}
        for name in COUNTS:
            programs[name] = os.path.join(folder, name)
            shutil.copy(devices.program("ioload"), programs[name])
        windows = Windows(folder)
        loads = []
        for name, count in COUNTS.items():
            args = ioload_args(disk, "read_index:pread:count=%d,rate=150" % count)
            loads.append(Load([programs[name]] + args[1:]))
        for load in loads:
            load.start()
        for load in loads:
            load.truth()
        read = windows.read()
    check_equal(len(read), WINDOWS, "windows")
    for (numbers, node, services), following in zip(read, read[1:] + [None]):
        start, end, ops, n, cut_cpu, made_cpu = numbers
        print("   %d operations in %d services: %.2f ms of CPU for a cut, %.2f ms for the profiles" % (
            ops, n, cut_cpu / 1e6, made_cpu / 1e6))
        check_equal(len(services), n, "profiles of services")
        check_equal(node.mappings[1]["file"].split()[0], "[node", "title of the node's profile")
        check_equal(node.total(OPS), ops, "operations of the node's profile")
        for kind in node.types:
            parts = sum(p.total(kind) for p in services.values())
            check(abs(parts - node.total(kind)) <= (len(node) if kind == TIME else 0), "%s: services %d, node %d" % (
                kind, parts, node.total(kind)))
        for name, profile in services.items():
            check_equal({"[service %s]" % s.labels.get("service") for s in profile}, {name}, "service of the samples")
            check_equal((profile.time_ns, profile.duration_ns), (node.time_ns, node.duration_ns), "times")
        check(all("pid" not in s.labels and "bytes" not in s.labels for s in node), "labels that were not asked for")
        if following:
            check_equal(end, following[0][0], "a window begins where the one before ended")
    for name, count in COUNTS.items():
        of_name = [p.select(root=name) for _, p, _ in read]
        check_equal(sum(p.total(OPS) for p in of_name), count, name + " operations")
        check_equal(sum(p.total(READ_BYTES) for p in of_name), count * 4096, name + " bytes")
        check(sum(p.total(OPS) > 0 for p in of_name) > 1, name + " is in one window only")


testing.main(services_add_up)
