#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The flame graph in Chromium, at 1280 and at 390 pixels: drawn, searched, zoomed, walked with the keyboard; names with
markup stay names. SCREENSHOTS=FOLDER keeps what it looked like; PROFILE=FILE draws that instead."""
import os
import subprocess
import sys
import tempfile
import xml.dom.minidom

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from lib import chromium, hostile as h  # noqa: E402

BLKPROF = os.environ.get("BLKPROF") or os.path.join(os.environ.get("BUILD", "build"), "blkprof")
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print("FAIL", text)


def profile():
    """A process with two callers of read, of which one inlines, kernel frames, and a name with markup."""
    names = ["", "io_time", "nanoseconds", "[node n]", "[kernel.kallsyms]", "/bin/db", "db", "main", "scan_table", "read_page",
             "pread64", "vfs_read", "submit_bio", "</title><b>\"&'", "commit", "fsync", "[in flight]"]
    index = {n: i for i, n in enumerate(names)}
    functions = [n for n in names[6:]]
    out = h.msg(1, h.num(1, 1) + h.num(2, 2))
    for i, file in ((1, "[node n]"), (2, "[kernel.kallsyms]"), (3, "/bin/db")):
        out += h.msg(3, h.num(1, i) + h.num(5, index[file]) + h.num(7, 1))
    where = {"db": 1, "[in flight]": 1, "vfs_read": 2, "submit_bio": 2}
    for i, n in enumerate(functions, 1):
        out += h.msg(5, h.num(1, i) + h.num(2, index[n]))
        out += h.msg(4, h.num(1, i) + h.num(2, where.get(n, 3)) + h.num(3, 4096 * i if where.get(n, 3) > 1 else 0) +
                     h.msg(4, h.num(1, i)))
    number = {n: i for i, n in enumerate(functions, 1)}
    for stack, value in (("db;main;scan_table;read_page;pread64;vfs_read;submit_bio", 6000000),
                         ("db;main;scan_table;</title><b>\"&'", 1000000), ("db;main;commit;fsync", 2500000),
                         ("db;main;commit;[in flight]", 500000)):
        out += h.msg(2, h.packed(1, [number[n] for n in reversed(stack.split(";"))]) + h.packed(2, [value]))
    return out + h.strings(names)


BOX = "(function(n){var t=[...document.querySelectorAll('#frames>svg')].find(function(e){return e.querySelector('text').textContent===n});" \
      "var r=t.querySelector('rect').getBoundingClientRect();return [r.x,r.y,r.width,r.height,getComputedStyle(t).display]})"


def look(browser, width, url, shots):
    browser.size(width, 900)
    browser.open(url)
    check(browser.js("document.querySelectorAll('#frames>svg').length") == 12, "%d: frames: %s" %
          (width, browser.js("document.querySelectorAll('#frames>svg').length")))
    check(browser.js("document.documentElement.scrollWidth") <= width, "%d: wider than the window" % width)
    main = browser.js(BOX + "('main')")
    check(abs(main[2] - width) < 2, "%d: main has %s" % (width, main))
    page = browser.js(BOX + "('read_page')")
    check(abs(page[2] - 0.6 * width) < 2, "%d: read_page is %s wide" % (width, page[2]))
    check(browser.js(BOX + "('</title><b>\"&\\'')")[2] > 0, "%d: the name with markup" % width)
    fills = [browser.js("getComputedStyle([...document.querySelectorAll('#frames>svg')].find(function(e){return "
                        "e.querySelector('text').textContent==='%s'}).querySelector('rect')).fill" % n)
             for n in ("read_page", "submit_bio", "[in flight]")]
    check(len(set(fills)) == 3, "%d: kinds look alike: %s" % (width, fills))
    if shots:
        browser.screenshot(os.path.join(shots, "svg-%d.png" % width))
    # Search from the keyboard.
    browser.key("/")
    browser.type("^(read|vfs)_")
    check("2 frames, 60.00%" in browser.js("document.getElementById('found').textContent"), "%d: found: %s" %
          (width, browser.js("document.getElementById('found').textContent")))
    check(browser.js("document.querySelectorAll('#frames svg.hit').length") == 2, "%d: highlighted" % width)
    if shots:
        browser.screenshot(os.path.join(shots, "svg-%d-search.png" % width))
    browser.key("Escape")
    check(browser.js("document.querySelectorAll('#frames svg.hit').length") == 0, "%d: search ends with Escape" % width)
    # A click zooms, Reset ends it.
    x, y, w, tall, _ = browser.js(BOX + "('commit')")
    browser.click(x + w / 2, y + tall / 2)
    check(abs(browser.js(BOX + "('commit')")[2] - width) < 2, "%d: commit is zoomed" % width)
    check(browser.js(BOX + "('scan_table')")[4] == "none", "%d: its sibling is gone" % width)
    check(abs(browser.js(BOX + "('fsync')")[2] - width * 2.5 / 3) < 2, "%d: its child grows with it" % width)
    check("commit" in browser.js("document.getElementById('detail').textContent"), "%d: the detail line" % width)
    if shots:
        browser.screenshot(os.path.join(shots, "svg-%d-zoom.png" % width))
    browser.js("document.getElementById('reset').click()")
    check(abs(browser.js(BOX + "('read_page')")[2] - 0.6 * width) < 2, "%d: reset" % width)
    # Arrows: down to the heaviest child, up again, Enter zooms.
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        browser.key(key)
    check(browser.js("document.activeElement.querySelector('text').textContent") == "scan_table", "%d: arrows" % width)
    browser.key("ArrowLeft")
    check(browser.js("document.activeElement.querySelector('text').textContent") == "commit", "%d: left" % width)
    browser.key("ArrowRight")
    browser.key("Enter")
    check(abs(browser.js(BOX + "('scan_table')")[2] - width) < 2, "%d: Enter zooms" % width)
    browser.key("Escape")
    check(abs(browser.js(BOX + "('main')")[2] - width) < 2, "%d: Escape" % width)


def main():
    if not chromium.find():
        print("Chromium is not installed")
        return 77
    shots = os.environ.get("SCREENSHOTS")
    with tempfile.TemporaryDirectory() as scratch:
        path, svg = os.path.join(scratch, "profile.pb"), os.path.join(scratch, "profile.svg")
        with open(path, "wb") as f:
            f.write(profile())
        subprocess.run([BLKPROF, "export", "-f", "svg", "-o", svg, path], check=True)
        xml.dom.minidom.parse(svg)
        with open(svg) as f:
            text = f.read()
        check("http" not in text.replace("http://www.w3.org/", ""), "the file loads nothing")
        with chromium.Browser() as browser:
            for width in (1280, 390):
                look(browser, width, "file://" + svg, shots)
            check(not browser.errors(), "errors of the script: %s" % browser.errors())
            if os.environ.get("PROFILE") and shots:
                subprocess.run([BLKPROF, "export", "-f", "svg", "-o", svg, os.environ["PROFILE"]], check=True)
                for width in (1280, 390):
                    browser.size(width, 900)
                    browser.open("file://" + svg)
                    browser.screenshot(os.path.join(shots, "real-%d.png" % width))
    print("%d failures" % len(failures))
    return 1 if failures else 0


sys.exit(main())
