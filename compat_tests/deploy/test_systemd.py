"""docs/deploy/kpybroker.service under a systemd of its own: readiness, restarts, stopping, and its sandbox.

`make deploy-test`; without `--deploy` these tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from compat_tests.deploy import rootfs
from compat_tests.deploy.booted import Machine, boot
from compat_tests.packaging import environments
from compat_tests.packaging.pythons import ROOT
from compat_tests.support.waiting import eventually

DEPLOY = ROOT / "docs" / "deploy"
PING = ("/opt/kpybroker/bin/kpybroker", "ping", "127.0.0.1:9092")


@pytest.fixture(scope="module")
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A booted Debian in which docs/deploy/install.sh has just ended."""
    if not request.config.getoption("--deploy"):
        pytest.skip("takes --deploy: it boots a root file system")
    if (reason := rootfs.why_not()) is not None:
        pytest.skip(reason)
    place = tmp_path_factory.mktemp("machine")
    root = rootfs.copy(place / "root")
    _, wheel = environments.build(place / "dist")
    shutil.copytree(DEPLOY, root / "root" / "deploy")
    shutil.copytree(wheel.parent, root / "wheels")
    rootfs.run_in(root, f"pip download --quiet --dest /wheels /wheels/{wheel.name}")
    with boot(root) as booted:
        script = "cd /root/deploy && sh -eux install.sh"
        booted.run("sh", "-c", script, PIP_NO_INDEX="1", PIP_FIND_LINKS="/wheels", KPYBROKER="kpybroker")
        assert booted.attempt(*PING).returncode == 0, "systemd says that it has started, and it does not respond"
        yield booted


def exchange(machine: Machine, topic: str, before: int) -> str:
    """What a client on the machine reads of a topic, after it has written a record."""
    return client(machine, "client", topic, str(before))


def client(machine: Machine, program: str, *arguments: str) -> str:
    """What a program of this folder prints, run in the machine's network."""
    command = [sys.executable, "-m", f"compat_tests.deploy.{program}", "127.0.0.1:9092", *arguments]
    return rootfs.run(machine.process.enter(command, "net")).strip()


def restart(machine: Machine) -> int:
    """The process id, as the machine sees it, of a broker that has just started."""
    machine.run("systemctl", "reset-failed", "kpybroker")
    machine.run("systemctl", "restart", "kpybroker")
    return int(machine.show("kpybroker", "MainPID"))


@contextmanager
def settings(machine: Machine, *lines: str) -> Iterator[None]:
    """More settings for the broker's next start."""
    file = machine.root / "etc" / "kpybroker" / "server.properties"
    before = file.read_text()
    file.write_text("\n".join([before, *lines, ""]))
    try:
        yield
    finally:
        file.write_text(before)


def test_it_is_active_when_it_serves_and_says_where(machine: Machine) -> None:
    restart(machine)
    assert machine.attempt(*PING).returncode == 0
    assert machine.show("kpybroker", "StatusText") == "Serving at 127.0.0.1:9092"
    assert exchange(machine, "serves", 0) == "record 0"


def test_a_killed_broker_is_started_again_with_its_data(machine: Machine) -> None:
    killed = restart(machine)
    assert exchange(machine, "killed", 0) == "record 0"
    machine.run("sh", "-c", f"kill -9 {killed}")
    eventually(lambda: int(machine.show("kpybroker", "MainPID")) not in (0, killed), "another process")
    eventually(lambda: machine.show("kpybroker", "ActiveState") == "active", "the broker is ready again")
    assert exchange(machine, "killed", 1) == "record 0, record 1"


def test_a_stop_is_in_order(machine: Machine) -> None:
    restart(machine)
    machine.run("systemctl", "stop", "kpybroker")
    assert machine.show("kpybroker", "Result") == "success"
    assert machine.show("kpybroker", "ExecMainStatus") == "0"
    assert "[KafkaServer id=0] shut down completed" in machine.journal("kpybroker")


def test_a_bad_configuration_fails_once_and_says_why(machine: Machine) -> None:
    machine.run("systemctl", "stop", "kpybroker")
    with settings(machine, "num.partitions=many"):
        assert machine.attempt("systemctl", "start", "kpybroker").returncode == 1
        assert machine.show("kpybroker", "ActiveState") == "failed"
        assert (machine.show("kpybroker", "ExecMainStatus"), machine.show("kpybroker", "NRestarts")) == ("2", "0")
        assert "fix: set num.partitions to a whole number" in machine.journal("kpybroker")


def test_it_compacts_which_takes_a_process_of_its_own(machine: Machine) -> None:
    with settings(machine, "log.cleaner.backoff.ms=100"):
        restart(machine)
        left, _, written = client(machine, "compact", "compacted").split()
    assert 0 < int(left) < int(written)


def test_it_has_no_privilege_and_no_other_file(machine: Machine) -> None:
    pid = restart(machine)
    status = machine.run("cat", f"/proc/{pid}/status")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split()[0] not in ("0", "1000")
    assert {fields[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    mounts = machine.run("cat", f"/proc/{pid}/mounts").splitlines()
    options = {mount.split()[1]: mount.split()[3].split(",")[0] for mount in mounts}
    assert (options["/"], options["/var/lib/private/kpybroker"]) == ("ro", "rw")
    assert machine.run("stat", "--format=%a", "/var/lib/private/kpybroker") == "700\n"


def test_the_unit_is_sound(machine: Machine) -> None:
    assert machine.run("systemd-analyze", "verify", "/etc/systemd/system/kpybroker.service") == ""


def test_nothing_is_left_of_a_killed_unit(machine: Machine) -> None:
    """KillMode=mixed: the group has no process once the broker has stopped, helper processes included."""
    restart(machine)
    group = machine.show("kpybroker", "ControlGroup")
    assert machine.run("cat", f"/sys/fs/cgroup{group}/cgroup.procs").split()
    machine.run("systemctl", "stop", "kpybroker")
    assert machine.attempt("cat", f"/sys/fs/cgroup{group}/cgroup.procs").returncode == 1
    assert os.path.isdir(machine.root / "var" / "lib" / "private" / "kpybroker")
