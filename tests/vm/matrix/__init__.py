# SPDX-License-Identifier: Apache-2.0
"""Every backend on every kernel and device against what a load did: guest.sh records, verdict.py compares, table.py shows."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
