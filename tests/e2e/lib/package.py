# SPDX-License-Identifier: Apache-2.0
"""The Debian package of a build."""
import os
import subprocess

from .devices import build, sh


def made(folder):
    """The package's file."""
    done = subprocess.run(["cpack", "-G", "DEB", "--config", os.path.join(build(), "CPackConfig.cmake"), "-B", folder],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    packages = [name for name in os.listdir(folder) if name.endswith(".deb")]
    if done.returncode or len(packages) != 1:
        raise RuntimeError("cpack made %s: %s" % (packages, done.stdout))
    return os.path.join(folder, packages[0])


def field(package, name):
    return sh("dpkg-deb", "-f", package, name)
