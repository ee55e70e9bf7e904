# SPDX-License-Identifier: Apache-2.0
"""The results of a matrix as a table in Markdown."""
from .devices import ALL
from .verdict import BACKENDS


def cell(result):
    """Operations seen and how they differ from the plan."""
    if result is None:
        return ""
    if result.device == "refused":
        return "FAILED" if result.wrong else "refused"
    if not result.planned:
        return "FAILED"
    notes = ["%+d" % (result.seen - result.planned) if result.seen != result.planned else "±0"]
    notes += ["of them %d [throttled]" % result.moved] if result.moved else []
    notes += ["FAILED"] if result.wrong else []
    return "%d (%s)" % (result.seen, ", ".join(notes))


def counts(results):
    """Kernel by device, a column for each backend: planned operations, seen ones and the difference."""
    lines = ["| kernel | device | planned | %s |" % " | ".join("`%s`" % b for b in BACKENDS), "| --- | --- | --: |" + " --: |" * len(BACKENDS)]
    for boot in dict.fromkeys(r.boot for r in results):
        mine = [r for r in results if r.boot == boot]
        refused = {r.backend: r for r in mine if r.device == "refused"}
        for name in boot.devices:
            row = {r.backend: r for r in mine if r.device == name}
            planned = max([r.planned for r in row.values()], default=0)
            cells = [cell(row.get(b) or refused.get(b)) for b in BACKENDS]
            lines.append("| %s | %s | %d | %s |" % (boot.name, ALL[name].title, planned, " | ".join(cells)))
    return "\n".join(lines)


def times(results):
    """Mean times of the pairs that recorded one load."""
    rows = [r for r in results if r.means]
    lines = ["| kernel | both at once | mean time | mean time | ratio |", "| --- | --- | --: | --: | --: |"]
    for r in rows:
        lines.append("| %s | %s | %.3f ms | %.3f ms | %.4f%s |" % (
            r.boot.name, r.backend.replace("+", " and "), r.means[0] / 1e6, r.means[1] / 1e6, r.means[0] / r.means[1],
            " FAILED" if r.wrong else ""))
    return "\n".join(lines) if rows else ""
