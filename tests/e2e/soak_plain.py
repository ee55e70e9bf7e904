#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=1200 program=plain
"""soak.py with the build that users have: its memory is the real one."""
import os
import runpy

runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "soak.py"), run_name="__main__")
