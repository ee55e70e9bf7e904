#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=240
"""The short form of tools/bench/attribution: a sampled profile agrees with an exhaustive one, where samplers that charge a bio with
those before it are half wrong."""
import os

bench = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../tools/bench/attribution")
os.execv(bench, [bench, "--runs", "1", "--seconds", "3", "--loads", "burst,readahead,poisson", "--off", "15", "--total", "40",
                  "--stacks", "4000"])
