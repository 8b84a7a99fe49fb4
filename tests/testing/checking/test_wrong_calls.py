"""Every wrong call of the test kit raises a TestingError with cause and fix, and changes nothing."""

from __future__ import annotations

import asyncio
import inspect
import re
import socket
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kpybroker import testing
from kpybroker.testing import Broker, Cluster, Record, SchemaRegistry, TestingError, wait_for
from kpybroker.testing.aio import Aio
from kpybroker.testing.checking.calls import KINDS
from tests.testing.checking import wrong_calls

TABLES = {name: table for name, table in vars(wrong_calls).items() if name.isupper()}
CALLS = [(call, expected) for table in TABLES.values() for call, expected in table]
JARGON = re.compile(r"(?<![\w-])(--\w|null\b|true or false|__init__|Traceback)")
"""Words of the command line, of JSON, and of what is within. An id of a topic may have `--` in it."""


async def coroutine() -> bool:
    return True


def awaited(waiting: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine of the kit."""
    return asyncio.run(waiting)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the calls in the tables are made of."""
    directory = tmp_path_factory.mktemp("files")
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(topics={"orders": 3}, in_thread=True))
        cluster = stack.enter_context(Cluster(2, topics={"spread": 2}, in_thread=True))
        broker.produce("orders", ["1", "2", "3"])
        broker.create_topic("kept", config={"cleanup.policy": "compact"})
        _read_one_partition(broker)
        taken = stack.enter_context(socket.socket())
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        a_file = directory / "file"
        a_file.write_text("x")
        dropped = broker.snapshot()
        dropped.drop()
        removed = broker.faults.observe("Fetch", expect_unused=True)
        removed.remove()

        def written(content: str | bytes) -> Path:
            path = directory / "written"
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            return path

        recursive: list[Any] = []
        recursive.append(recursive)
        yield {
            "broker": broker,
            "cluster": cluster,
            "faults": broker.faults,
            "Broker": Broker,
            "Cluster": Cluster,
            "Record": Record,
            "SchemaRegistry": SchemaRegistry,
            "wait_for": wait_for,
            "taken_port": _port(taken),
            "a_file": a_file,
            "directory": directory,
            "written": written,
            "recursive": recursive,
            "coroutine": coroutine,
            "awaited": awaited,
            "dropped": dropped,
            "removed": removed,
            "observed": broker.faults.observe("DescribeAcls", expect_unused=True),
        }


def _port(listening: socket.socket) -> int:
    port: int = listening.getsockname()[1]
    return port


def _read_one_partition(broker: Broker) -> None:
    from confluent_kafka import TopicPartition

    consumer = broker.consumer("readers", library="confluent-kafka")
    consumer.assign([TopicPartition("orders", 0, 0)])
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()


def _state(names: dict[str, Any]) -> Any:
    """What no wrong call may change."""
    broker, cluster = names["broker"], names["cluster"]
    topics = [(name, topic.partitions) for one in (broker, cluster) for name, topic in one.topics().items()]
    faults = [sorted(fault.id for fault in one.faults.all()) for one in (broker, cluster)]
    return topics, faults, [node.is_up for node in cluster], broker.clock.ahead_ms


@pytest.mark.parametrize(("call", "expected"), CALLS, ids=[call for call, _ in CALLS])
def test_a_wrong_call_says_what_is_wrong_and_what_is_right(names: dict[str, Any], call: str, expected: str) -> None:
    before = _state(names)
    with pytest.raises((TestingError, AssertionError)) as caught:
        eval(call, names)
    error = caught.value
    assert isinstance(error, TestingError), repr(error)
    assert expected in str(error)
    assert error.cause
    assert error.fix
    if "load(" not in call:  # a file has the words of JSON
        assert JARGON.search(str(error)) is None, str(error)
    assert _state(names) == before


def test_the_tables_are_large_and_no_call_is_there_twice() -> None:
    calls = [call for call, _ in CALLS]
    assert len(calls) >= 300
    assert len(set(calls)) == len(calls)


PUBLIC = [Aio, *(getattr(testing, name) for name in testing.__all__ if inspect.isclass(getattr(testing, name)))]
TYPES = (Any, testing.BrokerFactory, testing.Requests)
"""What is only there to annotate with."""
CHECKED = [
    one
    for one in PUBLIC
    if not issubclass(one, BaseException) and not hasattr(one, "__dataclass_fields__") and one not in TYPES
]
WITHOUT_ARGUMENTS = "(self)"
MADE_BY_THE_KIT = ("Node", "Fault", "Faults", "BrokerClock", "Snapshot", "Brokers", "Aio")
"""Classes that a test does not construct."""


@pytest.mark.parametrize("cls", CHECKED, ids=lambda cls: str(cls.__name__))
def test_every_parameter_of_every_public_method_has_a_kind(cls: type) -> None:
    for name, function in inspect.getmembers(cls, inspect.isfunction):
        is_constructor = name == "__init__" and cls.__name__ not in MADE_BY_THE_KIT
        if name.startswith("_") and not is_constructor:
            continue
        assert KINDS in function.__dict__ or _is_of_the_kit(cls, name), f"{cls.__name__}.{name} is not checked"
        own = [one for one in inspect.signature(inspect.unwrap(function)).parameters.values() if one.name != "self"]
        kinds = function.__dict__.get(KINDS, {})
        for parameter in own:
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD or parameter.name == "extra":
                assert parameter.name in kinds or _is_of_the_kit(cls, name), f"{cls.__name__}.{name}: {parameter.name}"


def _is_of_the_kit(cls: type, name: str) -> bool:
    """What a test does not call itself."""
    return (cls.__name__, name) in {
        ("Fault", "ended"),
        ("Fault", "failed"),
        ("Fault", "read"),
        ("Fault", "problem"),
        ("Faults", "clear_others"),
    }
