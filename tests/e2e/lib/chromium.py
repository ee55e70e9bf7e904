# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium through the DevTools protocol on a pipe."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    def __init__(self, width=1280, height=900, timeout=60):
        self.timeout = timeout
        self.folder = tempfile.mkdtemp(prefix="chromium-")
        to_read, self.to = os.pipe()
        self.back, from_write = os.pipe()
        # The protocol is on the descriptors 3 and 4 of the browser.
        shell = 'exec "$@" 3<&%d 4>&%d' % (to_read, from_write)
        args = ["sh", "-c", shell, "sh", find(), "--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--no-first-run",
                "--user-data-dir=" + self.folder, "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
                "--disable-dev-shm-usage", "--force-device-scale-factor=1", "about:blank"]
        self.process = subprocess.Popen(args, pass_fds=(to_read, from_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.number, self.pending, self.session, self.events = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.size(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self, deadline):
        while b"\0" not in self.pending:
            if not select.select([self.back], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            piece = os.read(self.back, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium ended")
            self.pending += piece
        message, self.pending = self.pending.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session and not method.startswith("Target."):
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.timeout
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]
            self.events.append(answer)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def js(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError("%s: %s" % (expression, result["exceptionDetails"]))
        return result["result"].get("value")

    def wait(self, expression):
        deadline = time.monotonic() + self.timeout
        while time.monotonic() < deadline:
            try:
                value = self.js(expression)
            except RuntimeError:
                value = None  # between two documents
            if value:
                return value
            time.sleep(0.1)
        raise TimeoutError("never true: " + expression)

    def key(self, key, text=None):
        extra = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **extra)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text):
        for c in text:
            self.key(c, c)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def errors(self):
        """Exceptions and errors of the console since the start."""
        bad = [e["params"] for e in self.events if e.get("method") == "Runtime.exceptionThrown"]
        bad += [e["params"] for e in self.events if e.get("method") == "Log.entryAdded" and
                e["params"]["entry"]["level"] == "error" and "favicon" not in json.dumps(e["params"])]
        return bad
