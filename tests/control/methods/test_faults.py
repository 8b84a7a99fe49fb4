"""The methods of faults: rules come in, handles go out, and what is wrong is refused with its fix."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.control.errors import ControlError
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.heartbeat import HeartbeatRequest
from tests.support.brokers.hosted_cluster import HostedCluster, eventually, hosted_cluster
from tests.support.brokers.running_broker import ask

BUSY = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
RULE: dict[str, Any] = {
    "match": {"api": "Heartbeat"},
    "act": {"error": BUSY.name},
    "trigger": {"times": 2},
}


async def beat(cluster: HostedCluster, group: str = "g") -> int:
    code: int = (await ask(cluster[0], HeartbeatRequest(group_id=group), 4)).error_code
    return code


async def refused(cluster: HostedCluster, method: str, **arguments: Any) -> ControlError:
    with pytest.raises(ControlError) as raised:
        await cluster.call(method, **arguments)
    return raised.value


async def test_the_life_of_a_fault(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        added = await cluster.call("add_fault", **RULE)
        state = {"id": added["id"], **RULE, "hits": 0, "matches": 0, "holds": 0, "is_over": False}
        assert await cluster.call("faults") == [state]
        assert await beat(cluster) == BUSY
        assert await cluster.call("wait_fault", id=added["id"]) == {"hits": 1}
        assert await beat(cluster) == BUSY
        assert await beat(cluster) != BUSY
        over = {**state, "hits": 2, "matches": 2, "is_over": True}
        assert await cluster.call("fault", id=added["id"]) == over
        assert await cluster.call("remove_fault", id=added["id"]) == over
        assert await cluster.call("faults") == []
        error = await refused(cluster, "fault", id=added["id"])
        assert (error.status, error.cause) == (404, f"there is no fault {added['id']}")


async def test_reset_removes_all_faults_and_lets_go_on_what_they_hold(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster, trio.open_nursery() as nursery:
        held = await cluster.call("add_fault", match={"api": "Heartbeat"}, act={"hold": True})
        nursery.start_soon(beat, cluster)
        await cluster.call("wait_fault", id=held["id"])
        assert (await cluster.call("fault", id=held["id"]))["holds"] == 1
        await cluster.call("reset")
        assert await cluster.call("faults") == []


async def test_a_hold_is_released_once_or_for_good(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster, trio.open_nursery() as nursery:
        held = await cluster.call("add_fault", match={"api": "Heartbeat"}, act={"hold": True})
        for number in (1, 2):
            nursery.start_soon(beat, cluster)
            await cluster.call("wait_fault", id=held["id"], hits=number)
            released = await cluster.call("release_fault", id=held["id"], again=number == 1)
            assert released == {"released": 1}
        await beat(cluster)


async def test_what_holds_nothing_has_nothing_to_release(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        counting = await cluster.call("add_fault", act={"observe": True})
        full = await cluster.call("disk_fault", kind="full", path="nowhere/*")
        for made in (counting, full):
            error = await refused(cluster, "release_fault", id=made["id"])
            assert (error.cause, error.status) == (f"fault {made['id']} holds nothing", 409)


async def test_a_wait_that_ends_without_its_hits(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        added = await cluster.call("add_fault", **RULE)
        error = await refused(cluster, "wait_fault", id=added["id"], hits=3, timeout_ms=0)
        assert (error.status, error.cause) == (408, "fault 1 has acted 0 times within 0 ms, not 3 times")
        assert (await refused(cluster, "wait_fault", id=added["id"], timeout_ms=-1)).status == 400


async def test_a_rule_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        error = await refused(cluster, "add_fault", act={"error": BUSY.name}, match={"topik": "t"})
        assert (error.cause, error.fix) == ("`match` has no field `topik`", "did you mean `topic`?")
        assert await cluster.call("faults") == []


ONE, TWO = {"act": {"observe": True}}, {"match": {"api": "Fetch"}, "act": {"delay_ms": 5}}
YAML_OF_TWO = """
faults:  # with a comment
  - act: {observe: true}
  - match:
      api: Fetch
    act:
      delay_ms: 5
"""


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (json.dumps(ONE), 1),
        (json.dumps([ONE, TWO]), 2),
        (json.dumps({"faults": [ONE, TWO]}), 2),
        (YAML_OF_TWO, 2),
        ("act: {observe: true}", 1),
    ],
)
async def test_faults_of_a_text(tmp_path: Path, text: str, count: int) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        added = await cluster.call("load_faults", text=text)
        assert [one["id"] for one in added] == [one["id"] for one in await cluster.call("faults")]
        assert len(added) == count


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("{", "the text is not JSON: "),
        ("a: [b", "the text is not YAML: "),
        (json.dumps([ONE, {"act": {"hold": 5}}]), "fault 2 of the text: `act.hold` is 5"),
        ("just words", "fault 1 of the text: the fault is 'just words'"),
    ],
)
async def test_a_text_with_a_mistake_adds_nothing(tmp_path: Path, text: str, cause: str) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        assert (await refused(cluster, "load_faults", text=text)).cause.startswith(cause)
        assert await cluster.call("faults") == []


async def test_json_needs_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    async with hosted_cluster(tmp_path, 1) as cluster:
        assert len(await cluster.call("load_faults", text=json.dumps(ONE))) == 1
        error = await refused(cluster, "load_faults", text=YAML_OF_TWO)
        assert error.fix.startswith("pip install 'kpybroker[testing]'")


async def test_a_predicate_is_asked(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster, trio.open_nursery() as nursery:
        match = {"api": "Heartbeat", "predicate": True}
        added = await cluster.call("add_fault", match=match, act={"error": BUSY.name})
        assert await cluster.call("next_predicate", timeout_ms=0) is None
        codes: list[int] = []

        async def ask_once() -> None:
            codes.append(await beat(cluster, "the group"))

        nursery.start_soon(ask_once)
        question = await cluster.call("next_predicate")
        assert (question["fault"], question["api"]) == (added["id"], "Heartbeat")
        assert question["request"]["group_id"] == "the group"
        await cluster.call("answer_predicate", id=question["id"], result=True)
        await eventually(lambda: codes == [BUSY], "the error")
        assert (await refused(cluster, "answer_predicate", id=question["id"], result=True)).status == 409


async def test_requests_between_brokers_meet_faults_too(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 2) as cluster:
        other = next(one for one in (0, 1) if cluster[one] is not cluster.controller)
        states = await cluster.call(
            "add_fault", match={"api": "LeaderAndIsr", "topic": "orders"}, act={"observe": True}
        )
        match = {"api": "UpdateMetadata", "broker": other, "topic": "orders"}
        late = await cluster.call("add_fault", match=match, act={"hold": True})
        await cluster.create_topic("known", [0, 1])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.create_topic, "orders", [0, 1])
            await cluster.call("wait_fault", id=states["id"])
            await cluster.call("wait_fault", id=late["id"])
            assert "orders" in cluster.controller.metadata.snapshot.topics
            assert "orders" not in cluster[other].metadata.snapshot.topics
            await cluster.call("release_fault", id=late["id"])
        match = {"api": "Fetch", "broker": 0, "client_id": "broker-1-fetcher-*", "topic": "orders"}
        failing = await cluster.call("add_fault", match=match, act={"error": "KAFKA_STORAGE_ERROR"})
        await cluster.call("wait_fault", id=failing["id"], hits=2)
        assert await cluster.produce("orders", b"1", broker=0, acks=1) == 0
        assert cluster.log_end("orders", broker=1) == 0
        await cluster.call("remove_fault", id=failing["id"])
        await eventually(lambda: cluster.log_end("orders", broker=1) == 1, "the record at the follower")
