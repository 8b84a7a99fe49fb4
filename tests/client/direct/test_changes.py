"""Changes of topics go to the controller; what none has taken goes to the next one, and nothing is asked twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.wire import WireCluster
from kpybroker.client.direct import changes
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.create_partitions import CreatePartitionsResponse
from kpybroker.wire.messages.create_topics import CreateTopicsResponse
from kpybroker.wire.messages.delete_topics import DeleteTopicsResponse

Codes = Mapping[str, ErrorCode]
NONE, MOVED = ErrorCode.NONE, ErrorCode.NOT_CONTROLLER


class Cluster:
    """Brokers 1 and 2; `controllers` are those that the next responses of Metadata name, -1 for none."""

    timeout_s = 30.0

    def __init__(self, controllers: Iterator[int], codes: Mapping[int, Codes]) -> None:
        self.nodes = dict.fromkeys((1, 2))
        self._controllers = controllers
        self._codes = codes
        self.asked: list[tuple[int, list[str]]] = []
        self.refresh()

    def refresh(self) -> None:
        self.controller_id = next(self._controllers)

    def broker(self, node_id: int) -> Any:
        return SimpleNamespace(
            version_of=lambda key: changes.BY_STATE,
            request=lambda key, request: self._respond(node_id, key, request),
        )

    def _respond(self, node_id: int, key: ApiKey, request: Any) -> Any:
        names = [one.name for one in request.topics]
        self.asked.append((node_id, names))
        codes = [(name, self._codes[node_id].get(name, NONE)) for name in names]
        if key is ApiKey.CREATE_TOPICS:
            topic = CreateTopicsResponse.CreatableTopicResult
            return CreateTopicsResponse(topics=[topic(name=name, error_code=code) for name, code in codes])
        if key is ApiKey.CREATE_PARTITIONS:
            grown = CreatePartitionsResponse.CreatePartitionsTopicResult
            return CreatePartitionsResponse(results=[grown(name=name, error_code=code) for name, code in codes])
        deleted = DeleteTopicsResponse.DeletableTopicResult
        return DeleteTopicsResponse(responses=[deleted(name=name, error_code=code) for name, code in codes])


def create(wire: WireCluster, names: str) -> Any:
    new = [
        SimpleNamespace(topic=n, num_partitions=1, replication_factor=1, replica_assignment=[], config={})
        for n in names
    ]
    return changes.create_topics(wire, new, validate_only=False)


def grow(wire: WireCluster, names: str) -> Any:
    wanted = [SimpleNamespace(topic=name, new_total_count=2) for name in names]
    return changes.create_partitions(wire, wanted, validate_only=False)


def delete(wire: WireCluster, names: str) -> Any:
    return changes.delete_topics(wire, list(names))


def shown(found: Mapping[str, CommandError | None]) -> dict[str, bool]:
    """Which have succeeded."""
    return {name: error is None for name, error in found.items()}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "RETRY_S", 0.0)


@pytest.mark.parametrize("change", [create, grow, delete])
def test_only_what_was_not_taken_is_asked_of_the_next_controller(change: Callable[[WireCluster, str], Any]) -> None:
    codes = {1: {"b": MOVED, "c": ErrorCode.INVALID_REQUEST}, 2: {}}
    cluster = Cluster(iter([1, -1, 2]), codes)
    found = change(cast(WireCluster, cluster), "abc")
    assert cluster.asked == [(1, ["a", "b", "c"]), (2, ["b"])]
    assert shown(found) == {"a": True, "b": True, "c": False}


def test_without_another_controller_the_outcome_is_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(iter([1]), {1: {"b": MOVED}})
    monkeypatch.setattr(Cluster, "timeout_s", -1.0)
    assert shown(delete(cast(WireCluster, cluster), "ab")) == {"a": True, "b": False}
    assert cluster.asked == [(1, ["a", "b"])]


def test_without_any_controller_nothing_is_asked() -> None:
    cluster = Cluster(iter([-1]), {})
    with pytest.raises(CommandError, match="there is no controller"):
        delete(cast(WireCluster, cluster), "a")
    assert cluster.asked == []
