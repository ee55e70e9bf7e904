# SPDX-License-Identifier: Apache-2.0
"""Network namespaces on a bridge in a namespace of its own, whose links can be cut and slowed. Nothing of it is seen outside."""
import os
import subprocess

from .devices import sh
from .testing import skip


class Network:
    """Hosts by name, each with an address on one bridge."""

    def __init__(self, *hosts):
        self.prefix, self.hosts = "bp%d-" % os.getpid(), list(hosts)
        self.hub = self.prefix + "hub"
        self.delays = False

    def __enter__(self):
        if subprocess.run(["which", "ip", "tc", "nsenter"], stdout=subprocess.DEVNULL).returncode:
            skip("ip, tc (iproute2) or nsenter is not installed")
        try:
            self._make(self.hub)
            sh("ip", "-n", self.hub, "link", "add", "bridge", "type", "bridge")
            sh("ip", "-n", self.hub, "link", "set", "bridge", "up")
            for number, host in enumerate(self.hosts):
                self._connect(number, host)
        except subprocess.CalledProcessError as e:
            self.__exit__()
            skip("no network namespaces with veth and a bridge here: %s" % e.output)
        self.delays = self._tc(self.hub, self.hosts[0], "netem", "delay", "1ms")
        self.restore(self.hosts[0])
        return self

    def __exit__(self, *exc):
        for name in [self.prefix + h for h in self.hosts] + [self.hub]:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)

    @staticmethod
    def _make(name):
        sh("ip", "netns", "add", name)
        sh("ip", "-n", name, "link", "set", "lo", "up")

    def _connect(self, number, host):
        name = self.prefix + host
        self._make(name)
        sh("ip", "-n", self.hub, "link", "add", host, "type", "veth", "peer", "name", "uplink", "netns", name)
        sh("ip", "-n", self.hub, "link", "set", host, "master", "bridge", "up")
        sh("ip", "-n", name, "addr", "add", self.address(host) + "/24", "dev", "uplink")
        sh("ip", "-n", name, "link", "set", "uplink", "up")

    def address(self, host):
        return "10.66.66.%d" % (self.hosts.index(host) + 1)

    def wrapper(self, host):
        """What runs a command as that host: its network and its host name. It becomes the command: the process id stays."""
        return ["nsenter", "--net=/run/netns/" + self.prefix + host, "unshare", "--uts", "sh", "-c",
                'hostname %s; exec "$@"' % host, "sh"]

    @staticmethod
    def _tc(namespace, device, *qdisc):
        return subprocess.run(["tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", *qdisc],
                              stderr=subprocess.DEVNULL).returncode == 0

    def cut(self, host):
        sh("ip", "-n", self.hub, "link", "set", host, "down")

    def slow(self, host):
        """Both ways: late and lossy where the kernel has netem, else a narrow link."""
        qdisc = ["netem", "delay", "300ms", "100ms", "loss", "5%"] if self.delays else ["tbf", "rate", "48kbit", "burst", "2kb",
                                                                                      "latency", "2s"]
        self._tc(self.hub, host, *qdisc)
        self._tc(self.prefix + host, "uplink", *qdisc)

    def restore(self, host):
        subprocess.run(["tc", "-n", self.hub, "qdisc", "del", "dev", host, "root"], stderr=subprocess.DEVNULL)
        subprocess.run(["tc", "-n", self.prefix + host, "qdisc", "del", "dev", "uplink", "root"], stderr=subprocess.DEVNULL)
        sh("ip", "-n", self.hub, "link", "set", host, "up")
