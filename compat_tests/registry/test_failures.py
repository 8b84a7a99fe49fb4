"""What fails under a request: it gets a documented error, and nothing that was acknowledged is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from compat_tests.conftest import StartBroker
from compat_tests.registry.conftest import Instance
from compat_tests.support.waiting import eventually

DEADLINE_S = 180.0
OUTAGE_CODES = {50001, 50002, 50003, 50004}
"""Of the guide: the store failed, or timed out; the leader was not reached, or not known."""
SUBJECTS = 40


class Writer:
    """Registers schemas at one instance, one after the other, in a thread; those that fail are not repeated."""

    def __init__(self, instance: Instance, name: str) -> None:
        self._instance = instance
        self._name = name
        self._is_ending = threading.Event()
        self.acknowledged: dict[str, int] = {}
        self.refused: list[int] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        with httpx.Client(base_url=self._instance.url, timeout=DEADLINE_S) as client:
            while not self._is_ending.is_set():
                subject = f"{self._name}-{number}"
                text = f'{{"type":"fixed","name":"F{self._name}{number}","size":4}}'
                response = client.post(f"/subjects/{subject}/versions", json={"schema": text}).json()
                if "id" in response:
                    self.acknowledged[subject] = response["id"]
                else:
                    self.refused.append(response["error_code"])
                number += 1

    def end(self) -> None:
        self._is_ending.set()
        self._thread.join()


Start = Callable[..., Instance]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts instances of one registry of a broker."""
    made: list[Instance] = []

    def make(bootstrap: str, timeout_s: int = 120) -> Instance:
        options = ("-b", bootstrap, "--timeout", str(timeout_s))
        made.append(Instance(*options, log=tmp_path / f"{len(made)}.log"))
        return made[-1]

    yield make
    for one in made:
        one.close()


def stored(instance: Instance) -> dict[str, int]:
    """The id of each subject's only version."""
    found = httpx.get(f"{instance.url}/schemas", timeout=DEADLINE_S).json()
    assert all(one["version"] == 1 for one in found)
    return {one["subject"]: one["id"] for one in found}


@pytest.mark.wide
def test_a_broker_that_is_killed_loses_nothing_that_was_acknowledged(own_broker: StartBroker, start: Start) -> None:
    broker = own_broker(group_initial_rebalance_delay_ms="0")
    first, second = start(broker.bootstrap, 15), start(broker.bootstrap, 15)
    writers = [Writer(first, "a"), Writer(second, "b")]
    try:
        eventually(lambda: all(len(one.acknowledged) >= SUBJECTS for one in writers), "both register")
        broker.service.kill()
        eventually(lambda: any(one.refused for one in writers), "an outage is an error")
        for instance in (first, second):
            assert len(stored(instance)) >= SUBJECTS, "reads go on from memory"
        before = [len(one.acknowledged) for one in writers]
        broker.start()
        eventually(
            lambda: all(len(one.acknowledged) >= number + 3 for one, number in zip(writers, before, strict=True)),
            "both register again",
        )
    finally:
        for writer in writers:
            writer.end()
    assert {code for writer in writers for code in writer.refused} <= OUTAGE_CODES
    acknowledged = writers[0].acknowledged | writers[1].acknowledged
    ids = stored(start(broker.bootstrap))
    assert acknowledged.items() <= ids.items(), "what was acknowledged is there, with its id"
    assert len(set(ids.values())) == len(ids), "each schema has an id of its own"


def test_instances_that_write_at_once_give_each_schema_one_id(own_broker: StartBroker, start: Start) -> None:
    broker = own_broker(group_initial_rebalance_delay_ms="0")
    instances = [start(broker.bootstrap) for _ in range(2)]
    responses: list[list[int]] = [[] for _ in range(8)]

    def register(at: int) -> None:
        """Each thread the same schemas in another order, under subjects of its own and under one of all."""
        with httpx.Client(base_url=instances[at % 2].url, timeout=DEADLINE_S) as client:
            for step in range(SUBJECTS):
                number = (step * (2 * at + 1)) % SUBJECTS
                body = {"schema": f'{{"type":"fixed","name":"F{number}","size":4}}'}
                for subject in (f"shared-{number}", f"own-{at}-{number}"):
                    responses[at].append(client.post(f"/subjects/{subject}/versions", json=body).json()["id"])

    threads = [threading.Thread(target=register, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(one) for one in responses] == [2 * SUBJECTS] * 8, "every registration got a response"
    ids = stored(start(broker.bootstrap))
    by_schema: dict[str, set[int]] = {}
    for subject, identifier in ids.items():
        by_schema.setdefault(subject.rpartition("-")[2], set()).add(identifier)
    assert {len(one) for one in by_schema.values()} == {1}
    assert len(set(ids.values())) == SUBJECTS
