"""Faults end with what they were made for, and one that never acted is reported there."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kpybroker.testing import Broker, Cluster, TestingError, UnusedFault, UnusedFaultWarning, UsageError
from kpybroker.testing.checking import unused


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker(topics={"orders": 1}, in_thread=True) as broker:
        yield broker


def ask(broker: Broker) -> None:
    """A request for metadata of the topic `orders`."""
    admin = broker.admin(library="confluent-kafka")
    admin.list_topics("orders", timeout=60)


def test_a_block_ends_its_fault_and_reports_one_that_never_acted(running: Broker) -> None:
    with running.faults.delay("Metadata", 0) as used:
        ask(running)
    assert used.hits >= 1
    text = r"delay_ms.*made at .*test_unused\.py:\d+, has never acted: nothing matched"
    with pytest.raises(UnusedFault, match=text), running.faults.delay("DeleteAcls", 0):
        pass
    assert running.faults.all() == []
    assert unused.taken() == []


def test_the_error_of_the_block_is_not_hidden(running: Broker) -> None:
    with pytest.raises(ZeroDivisionError), running.faults.delay("DeleteAcls", 0) as fault:
        raise ZeroDivisionError
    assert running.faults.all() == []
    assert unused.settle(unused.taken(lambda one: one is fault))


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        ({"topic": "ordres"}, "there is no topic 'ordres': did you mean 'orders'"),
        ({"topic": "orders", "nth": 100}, "let the test make such a request"),
    ],
)
def test_the_fix_names_what_may_have_been_meant(running: Broker, wrong: dict[str, Any], fix: str) -> None:
    with pytest.raises(UnusedFault) as caught, running.faults.error("Metadata", "UNKNOWN_SERVER_ERROR", **wrong):
        ask(running)
    assert fix in caught.value.fix
    if "nth" in wrong:
        assert "but its trigger let them pass" in caught.value.cause


def test_one_that_may_stay_unused_says_so(running: Broker) -> None:
    with running.faults.delay("DeleteAcls", 0, expect_unused=True):
        pass
    with running.faults.disk_full(expect_unused=True):
        pass
    with running.faults.add(act={"observe": True}, match={"api": "DeleteAcls"}, expect_unused=True):
        pass


def test_it_can_be_a_warning(running: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unused, "policy", "warn")
    with pytest.warns(UnusedFaultWarning, match="has never acted"), running.faults.observe("DeleteAcls"):
        pass


def test_a_predicate_that_raised_is_reported_also_where_no_one_asks_for_its_hits(running: Broker) -> None:
    def broken(request: Any) -> bool:
        return bool(request["no such field"])

    fault = running.faults.error("Metadata", "UNKNOWN_SERVER_ERROR", when=broken)
    with pytest.raises(TestingError, match=r"predicate of fault .* failed: KeyError: 'no such field'") as caught, fault:
        ask(running)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("result", [lambda: iter([]), lambda: running.__name__.upper], ids=["iterator", "method"])
def test_a_predicate_that_decides_nothing_is_reported(running: Broker, result: Any) -> None:
    fault = running.faults.delay("Metadata", 0, when=lambda request: result())
    with pytest.raises(TestingError, match="always true"), fault:
        ask(running)


def test_a_predicate_that_takes_too_long_is_reported_and_later_ones_are_still_asked(
    running: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpybroker.control.requests.predicates.DECISION_SECONDS_MAX", 0.05)
    go_on = threading.Event()
    fault = running.faults.delay("Metadata", 0, when=lambda request: go_on.wait(120))
    with pytest.raises(TestingError, match=r"did not decide about \d+ requests in time"), fault:
        ask(running)
    go_on.set()
    monkeypatch.undo()
    with running.faults.delay("Metadata", 0, when=lambda request: True) as fault:
        ask(running)
    assert fault.hits >= 1


def test_a_broker_ends_its_faults_and_reports_them() -> None:
    with pytest.raises(UnusedFault, match="has never acted"), Broker(in_thread=True) as broker:
        broker.faults.observe("DeleteAcls")
    with pytest.raises(ZeroDivisionError), Broker(in_thread=True) as broker:
        _fail(broker)
    assert unused.count() == 0


def _fail(broker: Broker) -> None:
    broker.faults.observe("DeleteAcls")
    raise ZeroDivisionError


async def in_a_loop(is_failing: bool) -> None:
    async with Broker(in_thread=True) as broker:
        if is_failing:
            _fail(broker)
        broker.faults.observe("DeleteAcls")


def test_so_does_an_asynchronous_block() -> None:
    with pytest.raises(UnusedFault):
        asyncio.run(in_a_loop(False))
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_a_loop(True))


def test_what_was_removed_with_all_others_is_known_afterwards(running: Broker) -> None:
    counted = running.faults.observe("Metadata")
    idle = running.faults.observe("DeleteAcls")
    ask(running)
    running.reset()
    assert counted.hits >= 1
    assert idle.hits == 0
    (problem,) = unused.settle(unused.taken())
    assert "DeleteAcls" in str(problem)
    lost = running.faults.observe("DeleteAcls")
    running.channel.call("reset")
    lost.remove()
    with pytest.raises(UsageError, match="removed by another program"):
        lost.status()
    assert unused.settle(unused.taken()) == []


def test_faults_that_are_made_by_the_channel_or_a_file_are_known(running: Broker, tmp_path: Path) -> None:
    rule = {"act": {"observe": True}, "match": {"api": "DeleteAcls"}}
    made = running.channel.call("add_fault", act=rule["act"], match=rule["match"])["id"]
    file = tmp_path / "faults.json"
    file.write_text('[{"act": {"observe": true}, "match": {"api": "DeleteAcls"}}]')
    (loaded,) = running.faults.load(file)
    assert [fault.id for fault in unused.taken()] == [made, loaded.id]
    running.faults.clear()


def test_what_another_program_made_is_removed_but_not_reported(running: Broker) -> None:
    import json
    import urllib.request

    body = json.dumps({"act": {"observe": True}, "match": {"api": "DeleteAcls"}}).encode()
    request = urllib.request.Request(
        f"{running.control}/v1/add_fault", body, {"Content-Type": "application/json"}, method="POST"
    )
    urllib.request.urlopen(request, timeout=60).close()
    own = running.faults.observe("DeleteAcls", expect_unused=True)
    running.faults.clear_others()
    assert [fault.id for fault in running.faults.all()] == [own.id]
    own.remove()


def test_levers_act_at_once_and_are_not_reported() -> None:
    with Cluster(2, topics={"t": 1}, in_thread=True) as cluster:
        leader = cluster.topics()["t"].partitions[0].leader
        assert leader is not None
        cluster.shrink_isr("t", 0, to=[leader])
        cluster.lag_follower("t", 0, broker=1 - leader)
        assert len(cluster.faults.all()) == 2


def test_what_is_held_is_not_released_by_a_kill() -> None:
    """Its faults are read, not removed: a request that is held at the kill is never done."""
    with Broker(topics=["t"]) as broker:
        producer = broker.producer(library="confluent-kafka")
        held = broker.faults.hold("Produce")
        producer.produce("t", b"a")
        producer.poll(0)
        held.wait()
        broker.kill()
        assert held.hits == 1


def test_warnings_are_not_raised_for_what_acted(running: Broker) -> None:
    with warnings.catch_warnings(), running.faults.observe("Metadata"):
        warnings.simplefilter("error")
        ask(running)
