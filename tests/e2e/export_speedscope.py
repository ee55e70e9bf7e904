#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""speedscope (npm) in Chromium loads our pprof and our JSON and shows the functions, inlined ones too, and every type.
It is looked for in $SPEEDSCOPE, $BUILD/npm and the global npm folder."""
import functools
import glob
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from lib import chromium  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
BLKPROF = os.environ.get("BLKPROF") or os.path.join(BUILD, "blkprof")
GOLDEN = os.path.join(HERE, "..", "golden", "pprof", "builder.pb")
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print("FAIL", text)


def speedscope():
    places = [os.environ.get("SPEEDSCOPE", ""), os.path.join(BUILD, "npm", "node_modules", "speedscope", "dist", "release")]
    if shutil.which("npm"):
        root = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True).stdout.strip()
        places.append(os.path.join(root, "speedscope", "dist", "release"))
    return next((p for p in places if p and glob.glob(os.path.join(p, "speedscope-*.js"))), None)


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def table(browser, base, name):
    """The text of the sandwich view, whose table of functions is not drawn on a canvas."""
    browser.open("about:blank")
    browser.open("%s/index.html#profileURL=%%2F%s&view=sandwich" % (base, name))
    return browser.wait("document.body.innerText.includes('Total') && document.body.innerText")


def main():
    release = speedscope()
    if not chromium.find() or not release:
        print("Chromium or speedscope (npm install speedscope) is not installed")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        site = os.path.join(scratch, "site")
        shutil.copytree(release, site)
        for name, args in (("io.json", ["-f", "speedscope"]), ("io.pb.gz", ["-f", "pprof"])):
            subprocess.run([BLKPROF, "export", *args, "-o", os.path.join(site, name), GOLDEN], check=True)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=site))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = "http://127.0.0.1:%d" % server.server_port
        with chromium.Browser() as browser:
            text = table(browser, base, "io.pb.gz")
            check("Scan" in text and "commit" in text and "app" in text, "pprof: %s" % text)
            check("7.00ms" in text, "pprof: the time of commit: %s" % text)
            text = table(browser, base, "io.json")
            check("ReadPage" in text and "Scan" in text and "commit" in text, "JSON, with the inlined call: %s" % text)
            check("io_time" in text and "2/" in text, "JSON: io_time is shown first: %s" % text)
            check("7.00ms" in text and "2.50ms" in text, "JSON: times: %s" % text)
            if os.environ.get("SCREENSHOTS"):
                browser.screenshot(os.path.join(os.environ["SCREENSHOTS"], "speedscope.png"))
            # The next profile of the file is another sample type.
            browser.key("n", "n")
            text = browser.wait("document.body.innerText.includes('read_bytes') && document.body.innerText")
            check("24.00 KB" in text or "24.58 KB" in text or "24 KB" in text, "JSON: read_bytes: %s" % text)
            browser.key("n", "n")
            browser.wait("document.body.innerText.includes('write_bytes')")
            browser.key("n", "n")
            text = browser.wait("document.body.innerText.includes('cpu') && document.body.innerText")
            check("3.00ms" in text, "JSON: cpu: %s" % text)
            check(not browser.errors(), "errors: %s" % browser.errors())
        server.shutdown()
    print("%d failures" % len(failures))
    return 1 if failures else 0


sys.exit(main())
