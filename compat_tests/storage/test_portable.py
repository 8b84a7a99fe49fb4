"""A broker in portable mode, under Windows' rules for files: real clients, removal, compaction and restart.

`make compat-portable` runs all of `compat_tests` this way; this is the slice that every run has.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.deps import ROOT
from compat_tests.storage.test_compaction import COMPACTED, Writer, await_compacted, start, updates
from compat_tests.support import quick
from compat_tests.support.services import Broker, kpybroker_executable
from compat_tests.support.tools import run_process
from compat_tests.support.waiting import eventually

StartBroker = Callable[..., Broker]
RULES = ROOT / "tests" / "support" / "windows"
LARGE = 600_000
"""Of a record: sent in several steps, and received into a buffer of its own."""


@pytest.fixture
def portable(own_broker: StartBroker, monkeypatch: pytest.MonkeyPatch) -> Broker:
    monkeypatch.setenv("KPYBROKER_PORTABLE", "1")
    monkeypatch.setenv("PYTHONPATH", f"{RULES}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    broker = start(own_broker, log_segment_delete_delay_ms="0")
    if broker.kind == "kafka":
        pytest.skip("Kafka has no such mode")
    return broker


def descriptors(broker: Broker) -> list[str]:
    opened = Path(f"/proc/{broker.service.pid}/fd")
    return [os.readlink(path) for path in opened.iterdir() if path.is_symlink()]


def removed(broker: Broker, topic: str) -> bool:
    return not [path for path in broker.data_dir.iterdir() if path.name.startswith(f"{topic}-")]


def test_a_portable_broker_serves_removes_compacts_and_restarts(portable: Broker) -> None:
    assert sum("eventpoll" in target for target in descriptors(portable)) == 1, "trio's is the only epoll"
    half = [f"{n} " + "x" * 1000 for n in range(200)] + ["y" * LARGE]
    values = half * 2  # in a segment each
    for _ in range(2):  # the second time over a topic of the same name that was removed
        quick.create_topic(portable.bootstrap, "records", segment_bytes=1_100_000)
        quick.fill(portable.bootstrap, "records", half)
        quick.fill(portable.bootstrap, "records", half)
        read = quick.read(portable.bootstrap, [("records", 0)], len(values), group="readers")
        assert [message.value().decode() for message in read] == values
        assert quick.committed(portable.bootstrap, "readers", [("records", 0)]) == [len(values)]
        admin = quick.admin_client(portable.bootstrap)
        admin.delete_topics(["records"], operation_timeout=quick.DEADLINE_S)["records"].result(quick.DEADLINE_S)
        eventually(lambda: removed(portable, "records"), "no file of the removed topic")
    quick.create_topic(portable.bootstrap, "table", **COMPACTED)
    writer = Writer(portable.bootstrap, "table", **{"batch.num.messages": 7})
    writer.write(*updates(1500, 20, "first"))
    await_compacted(portable.bootstrap, writer, 350)
    portable.restart()
    writer.write(*updates(100, 20, "second"))
    await_compacted(portable.bootstrap, writer, 450)
    said = portable.service.output()
    portable.stop()
    assert " ERROR " not in said, said
    run_process([str(kpybroker_executable()), "log", "verify", str(portable.data_dir)])


def test_another_broker_in_the_same_directory_is_refused(portable: Broker) -> None:
    result = run_process(
        [str(kpybroker_executable()), "dev", "--port", "0", "--data-dir", str(portable.data_dir)], check=False
    )
    assert result.code == 4, str(result)
    assert "is in use by another broker" in result.err
