"""Ports that are given to servers of tests: no two processes get the same one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.network import ports

FEW = range(19_000, 19_060)
TAKE = """
import sys
from tests.support.network import ports
ports.PORTS = range(int(sys.argv[1]), int(sys.argv[2]))
print(*(ports.free_port() for _ in range(int(sys.argv[3]))), flush=True)
sys.stdin.read()
"""


@contextmanager
def taken_by_another(count: int) -> Iterator[set[int]]:
    """Another process has taken so many of `FEW`, and has bound none of them."""
    command = [sys.executable, "-c", TAKE, str(FEW.start), str(FEW.stop), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield set(map(int, process.stdout.readline().split()))
        process.communicate()
    assert process.returncode == 0


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ports, "PORTS", FEW)
    yield
    for port in FEW:
        if port in ports._given:
            ports._give_back(port)


@pytest.mark.usefixtures("few")
def test_a_port_is_one_process_s_until_it_ends() -> None:
    with taken_by_another(20) as theirs:
        ours = {ports.free_port() for _ in range(20)}
        assert (len(theirs), len(ours)) == (20, 20)
        assert theirs.isdisjoint(ours)
        with taken_by_another(10) as third:
            assert len(third) == 10
            assert third.isdisjoint(theirs | ours)
    assert all(map(ports._take, theirs))


@pytest.mark.usefixtures("few")
def test_ports_in_a_row_are_taken_too() -> None:
    row = range(first := ports.free_ports_in_a_row(3), first + 3)
    with taken_by_another(30) as theirs:
        assert theirs.isdisjoint(row)
    assert not any(map(ports._take, row))


@pytest.mark.usefixtures("few")
def test_only_the_last_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "GIVEN_MAX", 2)
    monkeypatch.setattr(ports, "_given", {})
    first, *others = (ports.free_port() for _ in range(3))
    assert list(ports._given) == others
    assert ports._take(first)
