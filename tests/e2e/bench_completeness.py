#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=240
"""The short form of tools/bench/completeness: bytes and operations of a profile are the kernel's own."""
import os

bench = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../tools/bench/completeness")
os.execv(bench, [bench, "--scale", "0.3", "--size", "128"])
