"""Rules as JSON: what is accepted, and how each kind of nonsense is refused, with the nearest that makes sense."""

from __future__ import annotations

from typing import Any

import pytest

from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.control.rules import acts
from kpybroker.control.rules.errors import FaultError
from kpybroker.control.rules.fields import ACTS, MATCH, OPTIONS, TRIGGER
from kpybroker.control.rules.parse import parse
from kpybroker.control.rules.triggers import Trigger
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode

OBSERVE = {"observe": True}


def refused(data: Any) -> tuple[str, str]:
    with pytest.raises(FaultError) as raised:
        parse(data, SERVED)
    return raised.value.cause, raised.value.fix


@pytest.mark.parametrize(
    ("given", "act"),
    [
        ({"error": "NOT_LEADER_OR_FOLLOWER"}, acts.Error(ErrorCode.NOT_LEADER_OR_FOLLOWER)),
        ({"error": 6}, acts.Error(ErrorCode.NOT_LEADER_OR_FOLLOWER)),
        ({"error": -1, "level": "top"}, acts.Error(ErrorCode.UNKNOWN_SERVER_ERROR, is_top=True)),
        ({"error": "REQUEST_TIMED_OUT"}, acts.Error(ErrorCode.REQUEST_TIMED_OUT, after_work=True)),
        ({"error": "REQUEST_TIMED_OUT", "after_work": False}, acts.Error(ErrorCode.REQUEST_TIMED_OUT)),
        ({"error": "INVALID_RECORD", "after_work": True}, acts.Error(ErrorCode.INVALID_RECORD, after_work=True)),
        ({"delay_ms": 100, "jitter_ms": 20}, acts.Delay(100, 20)),
        ({"delay_ms": 0, "after_work": True}, acts.Delay(0, after_work=True)),
        ({"hold": True}, acts.Hold()),
        ({"never_answer": True}, acts.NeverAnswer()),
        ({"never_answer": True, "reading": False}, acts.NeverAnswer(is_reading=False)),
        ({"never_answer": True, "after_work": True}, acts.NeverAnswer(after_work=True)),
        ({"disconnect": "before"}, acts.Disconnect(acts.Side.BEFORE)),
        ({"reset": "after"}, acts.Disconnect(acts.Side.AFTER, is_reset=True)),
        ({"truncate_bytes": 20}, acts.Truncate(20)),
        ({"slice_bytes": 7, "every_ms": 2}, acts.Slice(7, 2)),
        ({"corrupt_batch": "crc"}, acts.Corrupt(acts.Damage.CRC)),
        ({"throttle_ms": 500}, acts.Throttle(500)),
        ({"blackhole": True}, acts.Blackhole()),
        ({"observe": True}, acts.Observe()),
    ],
    ids=str,
)
def test_every_act(given: dict[str, Any], act: acts.Act) -> None:
    assert parse({"act": given}, SERVED).act == act


def test_every_field_of_a_match() -> None:
    rule = parse(
        {
            "match": {
                "api": ["Produce", 1],
                "version": [3, 8],
                "broker": [1, 2],
                "client_id": "orders-*",
                "principal": "User:alice",
                "listener": ["PLAINTEXT", "S?L"],
                "topic": "orders",
                "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
                "partition": [0, 3],
                "transactional_id": "tx-1",
                "when": {"acks": -1, "topicData.name": "or*"},
                "predicate": True,
            },
            "act": OBSERVE,
        },
        SERVED,
    )
    match = rule.match
    assert match.apis == frozenset((ApiKey.PRODUCE, ApiKey.FETCH))
    assert match.matches_api(1, 8)
    assert not match.matches_api(1, 9)
    assert not match.matches_api(3, 8)
    assert match.matches_client(1, "orders-7", "User:alice", "SSL")
    assert not match.matches_client(0, "orders-7", "User:alice", "SSL")
    assert not match.matches_client(1, "my-orders-7", "User:alice", "SSL")
    assert not match.matches_client(1, None, "User:alice", "SSL")
    assert not match.matches_client(1, "orders-7", "User:bob", "SSL")
    assert not match.matches_client(1, "orders-7", "User:alice", "SASL")
    assert match.named["topic_id"](bytes(15) + b"\x01")
    assert match.named["partition"](3)
    assert not match.named["partition"](1)
    assert [condition.path for condition in match.when] == [("acks",), ("topic_data", "name")]
    assert match.is_asked


@pytest.mark.parametrize(
    ("given", "trigger"),
    [
        ({}, Trigger()),
        ({"always": True}, Trigger()),
        ({"once": True}, Trigger(times=1)),
        ({"nth": 3, "skip": 1}, Trigger(nth=3, skip=1)),
        (
            {"times": 2, "probability": 0.5, "seed": 42, "for_ms": 100},
            Trigger(times=2, probability=0.5, seed=42, for_ms=100),
        ),
    ],
    ids=str,
)
def test_every_trigger(given: dict[str, Any], trigger: Trigger) -> None:
    assert parse({"act": OBSERVE, "trigger": given}, SERVED).trigger == trigger


def test_a_rule_is_listed_as_it_was_given() -> None:
    data = {"match": {"api": "Fetch"}, "act": {"delay_ms": 5}, "trigger": {"once": True}}
    assert parse(data, SERVED).data == data


@pytest.mark.parametrize(
    ("match", "cause", "fix"),
    [
        ({"topik": "orders"}, "`match` has no field `topik`", "did you mean `topic`?"),
        ({"api": "Produc"}, "`match.api` is 'Produc', which is not an API", "did you mean `Produce`?"),
        ({"api": "produce"}, "`match.api` is 'produce', which is not an API", "did you mean `Produce`?"),
        ({"api": 999}, "`match.api` is 999", "give the name or the key of an API"),
        ({"api": []}, "`match.api` is []", "give an API by name or key, or a list of these"),
        ({"api": "Envelope"}, "Envelope is not served here", "did you mean `"),
        ({"version": [8, 3]}, "`match.version` is [8, 3]", "give a version, or a list of the first and the last one"),
        ({"api": "Heartbeat", "version": 9}, "`match.version` is [9, 9], which no named API has", "they have"),
        ({"partition": -1}, "`match.partition` is -1", "give an integer of 0 or more, or a list of these"),
        ({"partition": True}, "`match.partition` is True", "give an integer of 0 or more, or a list of these"),
        ({"client_id": 7}, "`match.client_id` is 7", "give a string, or a list of these"),
        ({"topic_id": "short"}, "`match.topic_id` is 'short'", "give a topic id as Kafka prints it, of 22 characters"),
        ({"predicate": False}, "`match.predicate` is False", "give true, or leave it out"),
        ({"api": "Heartbeat", "topic": "orders"}, "requests of Heartbeat name no topic", "they name group"),
        (
            {"api": ["Heartbeat", "ListGroups"], "partition": 0},
            "requests of Heartbeat, ListGroups name no part",
            "they",
        ),
        ({"api": "ListGroups", "group": "g"}, "requests of ListGroups name no group", "leave it out"),
        ({"when": 5}, "`match.when`", "give an object of fields"),
        (
            {"api": "Produce", "when": {"topic_data.partition_data.indx": 3}},
            "`match.when` has the path `topic_data.partition_data.indx`, but Produce has no "
            "`topic_data.partition_data.indx`",
            "did you mean `index`?",
        ),
        ({"api": "Produce", "when": {"acks.x": 1}}, "`match.when` has the path `acks.x`", "end the path at `acks`"),
        (
            {"api": "Produce", "when": {"topic_data": 1}},
            "`match.when` has the path `topic_data`, which has fields of its own",
            "add one of name, topic_id, partition_data",
        ),
        (
            {"when": {"no.such": 1}},
            "`match.when` has the path `no.such`, which is in no request of any API",
            "name its",
        ),
        ({"api": "Produce", "when": {"acks": {}}}, "`match.when.acks` is {}", "give a string, a number"),
    ],
    ids=str,
)
def test_a_match_that_makes_no_sense(match: dict[str, Any], cause: str, fix: str) -> None:
    found = refused({"match": match, "act": OBSERVE})
    assert found[0].startswith(cause)
    assert found[1].startswith(fix)


@pytest.mark.parametrize(
    ("act", "cause", "fix"),
    [
        ({}, "`act` has no act", "give one of error, delay_ms"),
        ({"eror": "X"}, "`act` has no field `eror`", "did you mean `error`?"),
        ({"error": "NOT_LEADER"}, "`act.error` is 'NOT_LEADER', which is not an error", "did you mean `NOT_LEADER_OR_"),
        ({"error": "NONE"}, "`act.error` is 'NONE', which is not an error", ""),
        ({"error": 0}, "`act.error` is 0", "give the name or the code of an error"),
        ({"error": 6, "delay_ms": 5}, "`act` has 2 acts: error, delay_ms", "give one; add a fault for each other one"),
        ({"delay_ms": -5}, "`act.delay_ms` is -5", "give an integer from 0 to"),
        ({"delay_ms": 5, "level": "top"}, "`level` does nothing with `delay_ms`", "leave it out; it is for error"),
        ({"jitter_ms": 5}, "`act` has no act", "give one of"),
        ({"hold": 5}, "`act.hold` is 5", "give true, or leave it out"),
        ({"disconnect": "during"}, "`act.disconnect` is 'during'", "one of `after`, `before`"),
        ({"disconnect": True}, "`act.disconnect` is True", "give one of before, after"),
        ({"corrupt_batch": "crcs"}, "`act.corrupt_batch` is 'crcs'", "did you mean `crc`?"),
        ({"slice_bytes": 0}, "`act.slice_bytes` is 0", "give an integer from 1 to"),
        ({"error": 6, "after_work": "yes"}, "`act.after_work` is 'yes'", "give true or false"),
    ],
    ids=str,
)
def test_an_act_that_makes_no_sense(act: dict[str, Any], cause: str, fix: str) -> None:
    found = refused({"act": act})
    assert found[0].startswith(cause)
    assert found[1].startswith(fix)


@pytest.mark.parametrize(
    ("data", "cause", "fix"),
    [
        ([], "the fault is []", "give an object of fields"),
        ({"matches": {}, "act": OBSERVE}, "a fault has no field `matches`", "did you mean `match`?"),
        ({"topic": "orders", "act": OBSERVE}, "a fault has no field `topic`", "put it into `match`"),
        ({"match": {}, "error": 6}, "a fault has no field `error`", "put it into `act`"),
        ({"act": OBSERVE, "times": 2}, "a fault has no field `times`", "put it into `trigger`"),
        ({"match": {"api": "Fetch"}}, "the fault has no `act`", "give one of error"),
        ({"act": "observe"}, "`act` is 'observe'", "give an object of fields"),
        ({"act": OBSERVE, "trigger": {"nth": 2, "once": True}}, "`trigger` has nth and once, which contra", "give one"),
        ({"act": OBSERVE, "trigger": {"prob": 0.5}}, "`trigger` has no field `prob`", "did you mean `probability`?"),
        ({"act": OBSERVE, "trigger": {"probability": 2}}, "`trigger.probability` is 2", "give a number from 0 to 1"),
        (
            {"match": {"api": "Produce"}, "act": {"corrupt_batch": "crc"}},
            "`corrupt_batch` needs batches, which responses of Produce do not have",
            "use `api: Fetch`",
        ),
        (
            {"match": {"api": "UpdateMetadata"}, "act": {"throttle_ms": 5}},
            "responses of UpdateMetadata have no throttle time",
            "name another API",
        ),
    ],
    ids=str,
)
def test_a_rule_that_makes_no_sense(data: Any, cause: str, fix: str) -> None:
    found = refused(data)
    assert found[0].startswith(cause)
    assert found[1].startswith(fix)


def test_every_option_belongs_to_an_act() -> None:
    assert {option for act in ACTS.values() for option in act.options} == set(OPTIONS)


def test_every_field_is_described() -> None:
    for name, described in {**MATCH, **ACTS, **OPTIONS, **TRIGGER}.items():
        assert described.doc.endswith("."), name
        assert described.shape, name
    assert all(act.sees for act in ACTS.values())
