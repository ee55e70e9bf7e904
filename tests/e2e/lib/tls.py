# SPDX-License-Identifier: Apache-2.0
"""Authorities and certificates made with openssl, and a server that ends TLS in front of a plain one."""
import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import threading

from .testing import skip


def openssl(folder, *args):
    if not shutil.which("openssl"):
        skip("no openssl to make certificates with")
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)


_EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def authority(folder, name):
    """The path of its certificate, its key beside it."""
    openssl(folder, "req", "-x509", *_EC, "-keyout", name + ".key", "-out", name + ".crt", "-days", "2", "-subj", "/CN=" + name)
    return os.path.join(folder, name + ".crt")


def certificate(folder, name, ca):
    """(certificate, key) for 127.0.0.1, signed by an authority of the same folder."""
    with open(os.path.join(folder, name + ".ext"), "w") as f:
        f.write("subjectAltName = IP:127.0.0.1, DNS:localhost\n")
    openssl(folder, "req", *_EC, "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + name)
    openssl(folder, "x509", "-req", "-in", name + ".csr", "-CA", ca + ".crt", "-CAkey", ca + ".key", "-CAcreateserial", "-days", "2",
            "-extfile", name + ".ext", "-out", name + ".crt")
    return os.path.join(folder, name + ".crt"), os.path.join(folder, name + ".key")


class Front:
    """TLS on a port of its own, plain to `port` behind it, within a with block."""

    def __init__(self, port, chain):
        self.behind, self.context = port, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*chain)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self.listener.accept()[0],), daemon=True).start()

    def _serve(self, raw):
        try:
            outer = self.context.wrap_socket(raw, server_side=True)
        except OSError:
            raw.close()
            return
        with outer, socket.create_connection(("127.0.0.1", self.behind)) as inner:
            back = threading.Thread(target=self._copy, args=(inner, outer), daemon=True)
            back.start()
            self._copy(outer, inner)
            back.join()

    @staticmethod
    def _copy(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
