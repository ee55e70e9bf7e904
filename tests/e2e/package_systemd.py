#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=420
"""The units as systemd runs them: a Debian with systemd is booted in a container, the package's services are started, reloaded,
restarted by an upgrade and gone after a purge; a window goes from the agent to the collector."""
import os
import re
import shutil
import subprocess

from lib import testing
from lib.chroot import Chroot
from lib.package import field, made
from lib.testing import check, check_equal, skip

UNIT = """[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/bash -c 'exec >/result 2>&1; . /trial.sh; echo complete; systemctl poweroff'
[Install]
WantedBy=multi-user.target
"""
TRIAL = """
both="blkprof-agent blkprof-collector"
state() { for unit in $both; do echo "$1 $unit $(systemctl is-active $unit)"; done; }
state installed
cd /etc/blkprof
public=$(blkprof keygen -o collector.key)
echo "$(blkprof keygen -o agent.key) $(hostname)" >allowed_keys
sed -i 's|^#key = .*|key = /run/credentials/blkprof-collector.service/key|; s|^#allowed_keys|allowed_keys|' collector.conf
printf '[agent]\\nwindow = 1s\\n[ship]\\nendpoint = tcp://127.0.0.1:6062 %s\\nkey = /etc/blkprof/agent.key\\n' $public >agent.conf
cd /
systemctl enable --now $both
for i in $(seq 200); do
	blkprof query --store /var/lib/blkprof-collector/store --list nodes 2>/dev/null | grep -q Z && break
	sleep 0.1
done
blkprof query --store /var/lib/blkprof-collector/store --list nodes
state started
systemctl reload $both
state reloaded
systemctl show -p MainPID $both | sed '/^$/d; s/^/before /'
dpkg -i /blkprof.deb
state upgraded
systemctl show -p MainPID $both | sed '/^$/d; s/^/after /'
systemctl show -p NRestarts $both
journalctl --no-pager -o cat -u blkprof-agent -u blkprof-collector
dpkg --purge blkprof
state purged
echo left $(find / -xdev -name '*blkprof*' -not -path '/var/cache/*' -not -path '/var/log/*' -not -path '/proc/*' -not -path '/run/*')
"""


def boots():
    """The output of the trial."""
    with testing.scratch() as folder:
        package = made(folder)
        needed = [re.split("[ (|]", name.strip())[0] for name in field(package, "Depends").split(",")]
        debian = Chroot(folder, needed + ["systemd", "systemd-sysv", "dbus", "procps"])
        shutil.copy(package, debian.path("/blkprof.deb"))
        done = debian.run("dpkg", "-i", "/blkprof.deb")
        check_equal(done.returncode, 0, "dpkg -i: " + done.stdout)
        debian.write("/etc/systemd/system/trial.service", UNIT)
        debian.write("/trial.sh", TRIAL)
        debian.run("systemctl", "enable", "trial.service")
        booted = subprocess.run(["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--capability=all", "--private-network",
                                 "--system-call-filter=bpf perf_event_open", "--machine=blkprof-trial", "-D", debian.root, "--boot"],
                                text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
        if not debian.exists("/result"):
            skip("systemd does not start in a container here: %s" % (booted.stdout.splitlines() or ["without a word"])[-1])
        return debian.read("/result")


def services():
    if not shutil.which("systemd-nspawn"):
        skip("systemd-nspawn is not installed")
    out = boots()
    print("".join(line for line in out.splitlines(True) if "blkprof_collector_" not in line))
    for state in ("started", "reloaded", "upgraded"):
        for unit in ("agent", "collector"):
            check("%s blkprof-%s active" % (state, unit) in out, "blkprof-%s is %s" % (unit, state))
    for unit in ("agent", "collector"):
        check("installed blkprof-%s inactive" % unit in out, "blkprof-%s is not started by the installation" % unit)
        check("purged blkprof-%s active" % unit not in out, "blkprof-%s ends with the package" % unit)
    check(re.search(r"^\S+ +20\d\d-\S+ +20\d\d-\S+ +\d+$", out, re.M), "a window of the agent is in the store")
    pids = [re.findall(r"^%s MainPID=(\d+)" % when, out, re.M) for when in ("before", "after")]
    check(len(pids[0]) == 2 and not set(pids[0]) & set(pids[1]), "the upgrade restarts both: %s" % pids)
    check("listening at" in out and "without encryption" not in out, "the collector has its key from the credential")
    check("code=killed" not in out and "Failed with result" not in out, "nothing was killed or failed")
    check_equal(re.findall(r"^NRestarts=(\d+)", out, re.M), ["0", "0"], "restarts after failures")
    check_equal(re.findall(r"^left ?(.*)", out, re.M), ["/blkprof.deb"], "what a purge leaves")
    check("complete" in out, "the trial went to its end")


testing.main(services)
