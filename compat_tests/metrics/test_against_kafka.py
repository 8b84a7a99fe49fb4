"""Our metrics next to Kafka 3.9.1's after the same requests: MBeans by Jolokia, pages for Prometheus, state changes.

Both brokers get the requests of `work.py`, on sockets of the test's own. What may differ is listed, with its reason, in
`tests.metrics.absent`, from which docs/reference/metrics.md is made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from compat_tests.conftest import Launcher
from compat_tests.metrics import compare
from compat_tests.metrics.compare import Snapshot, growth
from compat_tests.metrics.pair import Side, ready
from compat_tests.metrics.probes import DIFFERENT, GETS, POSTS
from compat_tests.metrics.work import NAME, PARTITIONS, PREPARE, WORK
from compat_tests.support.waiting import eventually
from tests.metrics import absent

CHANGES = re.compile(r"((?:TRACE|INFO) \[(?:Controller|Broker) id=.*) \(state\.change\.logger\)")
BY_CHANCE = (
    (re.compile(r"Some\([\w-]{22}\)"), "Some(id)"),
    (re.compile(r"(correlation ?[iI]d) \d+"), r"\1 N"),
    (re.compile(r"in \d+ms"), "in N ms"),
)


class Done(NamedTuple):
    """One broker after the work."""

    side: Side
    seen: Snapshot
    log: str


@pytest.fixture(scope="module")
def both(launcher: Launcher) -> Iterator[dict[str, Done]]:
    done: dict[str, Done] = {}
    sides = [
        Side(kind, launcher.directory / f"metrics-{kind}", launcher.zookeeper(f"metrics-{kind}"), {})
        for kind in ("kafka", "kpybroker")
    ]
    try:
        for side in sides:
            side.start()
            ready(side)
            side.play(PREPARE)
            before = settled(side)
            side.play(WORK)
            done_by = partial(finished, side, before)
            after = eventually(done_by, f"{side.kind} has done its work")
            done[side.kind] = Done(side, Snapshot(before, after), side.broker.service.output())
        yield done
    finally:
        for side in sides:
            side.broker.service.kill()


def settled(side: Side) -> dict[str, Any]:
    """All MBeans, once no event waits."""

    def read() -> dict[str, Any] | None:
        found = side.mbeans()
        waiting = found["kafka.controller:name=EventQueueSize,type=ControllerEventManager"]["Value"]
        return None if waiting else found

    return eventually(read, f"{side.kind} is idle")


def finished(side: Side, before: dict[str, Any]) -> dict[str, Any]:
    """All MBeans after the work, once what it leaves is there. AssertionError: not yet."""
    found = settled(side)
    # A deletion is three events: it is asked for, the replicas are gone, and so is the request for it.
    deletions = "kafka.controller:name=TopicDeletionRateAndTimeMs,type=ControllerStats"
    assert found[deletions]["Count"] >= before[deletions]["Count"] + 3, found[deletions]
    for name in (
        "kafka.controller:name=GlobalPartitionCount,type=KafkaController",
        "kafka.server:name=PartitionCount,type=ReplicaManager",
    ):
        assert found[name]["Value"] == PARTITIONS, (name, found[name])
    assert found["kafka.controller:name=TopicsToDeleteCount,type=KafkaController"]["Value"] == 0
    return found


def test_every_mbean_of_ours_is_one_of_kafkas(both: dict[str, Done]) -> None:
    assert not compare.only_here(both["kafka"].seen.after, both["kpybroker"].seen.after)


def test_every_mbean_of_kafka_is_here_or_has_a_reason(both: dict[str, Done]) -> None:
    assert not compare.only_there(both["kafka"].seen, both["kpybroker"].seen.after)


@pytest.mark.parametrize("pattern", absent.MBEANS)
def test_what_is_absent_is_not_here(pattern: str, both: dict[str, Done]) -> None:
    """Of clients' software it depends on who is connected."""
    here = [name for name in both["kpybroker"].seen.after if compare.is_listed(name, {pattern: ""})]
    assert not here or "clientSoftwareName" in pattern


def test_mbeans_have_kafkas_attributes(both: dict[str, Done]) -> None:
    assert not compare.attributes_that_differ(both["kafka"].seen.after, both["kpybroker"].seen.after)


def test_counts_and_values_are_kafkas(both: dict[str, Done]) -> None:
    kafka, ours = (both[kind].seen for kind in ("kafka", "kpybroker"))
    assert not list(compare.counts_that_differ(kafka, ours))
    for name in (
        *(f"name={name},topic={NAME},type=BrokerTopicMetrics" for name in ("MessagesInPerSec", "BytesInPerSec")),
        *(f"name={name},type=BrokerTopicMetrics" for name in ("FailedProduceRequestsPerSec", "BytesRejectedPerSec")),
        *(f"name={name},type=BrokerTopicMetrics" for name in ("InvalidMessageCrcRecordsPerSec",)),
        *(
            f"name={name},type=BrokerTopicMetrics"
            for name in ("TotalProduceRequestsPerSec", "TotalFetchRequestsPerSec")
        ),
        *(f"name={name}MessageConversionsPerSec,type=BrokerTopicMetrics" for name in ("Produce", "Fetch")),
    ):
        assert growth(ours, f"kafka.server:{name}") > 0, name
    for request, version in (("Produce", 9), ("FetchConsumer", 12), ("EndTxn", 3), ("ElectLeaders", 2)):
        name = f"kafka.network:name=RequestsPerSec,request={request},type=RequestMetrics,version={version}"
        assert growth(ours, name) == growth(kafka, name) > 0


def test_the_group_coordinator_counts_what_kafkas_counts(both: dict[str, Done]) -> None:
    """Values that end in `-count` are attributes, which the test above does not see."""
    name = "kafka.server:type=group-coordinator-metrics"
    counted = {
        kind: {
            attribute: value - done.seen.before[name][attribute]
            for attribute, value in done.seen.after[name].items()
            if attribute.endswith("-count")
        }
        for kind, done in both.items()
    }
    kafka, ours = counted["kafka"], counted["kpybroker"]
    commits = kafka.pop("offset-commit-count"), ours.pop("offset-commit-count")
    assert commits == (2, 3), "a member's request with two offsets, and a transaction's with one"
    assert ours == kafka
    assert kafka["group-completed-rebalance-count"] > 0


def test_stages_count_all_requests_but_those_not_sampled_yet(both: dict[str, Done]) -> None:
    kafka, ours = (both[kind].seen for kind in ("kafka", "kpybroker"))
    for request in ("Produce", "Fetch", "FetchConsumer", "OffsetCommit", "JoinGroup", "EndTxn", "CreateTopics"):
        name = f"kafka.network:name=TotalTimeMs,request={request},type=RequestMetrics"
        assert 0 <= growth(kafka, name) - growth(ours, name) <= 31, name
        assert growth(ours, name) > 0


def test_pages_for_prometheus_have_the_same_names_and_labels(both: dict[str, Done]) -> None:
    """`_sum` is ours only; what the exporter has more of belongs to MBeans that are absent, or to idle APIs."""
    theirs, mine = (samples(both[kind].side.page()) for kind in ("kafka", "kpybroker"))
    ours = {name: labels for name, labels in mine.items() if name.startswith("kafka_") and not is_ours(name)}
    extra = {
        name: labels - theirs.get(name, set()) for name, labels in ours.items() if labels - theirs.get(name, set())
    }
    extra.pop("kafka_server_socket_server_metrics_connections_software", None)
    assert not extra
    absent_prefixes = tuple(prefix(name) for name in both["kafka"].seen.after if compare.is_listed(name))
    missing = {name for name in theirs if name.startswith("kafka_") and name not in ours}
    missing.discard("kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_count")  # nanoseconds
    assert not {name for name in missing if not name.startswith(absent_prefixes)}


def samples(page: str) -> dict[str, set[frozenset[tuple[str, str]]]]:
    found: dict[str, set[frozenset[tuple[str, str]]]] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            labels = {key: value for key, value in sample.labels.items() if key != "logDirectory"}
            found.setdefault(sample.name, set()).add(frozenset(labels.items()))
    return found


def is_ours(name: str) -> bool:
    """No MBean, or without one in the exporter."""
    exported = ("kafka_consumergroup", "kafka_topic_", "kafka_broker")
    return name.startswith(exported) or name.endswith("_sum")


def prefix(name: str) -> str:
    domain, properties = compare.properties_of(name)
    parts = (domain, properties["type"], re.sub("(PerSec|Percent).*", "", properties.get("name", "")))
    return "_".join(re.sub(r"[^a-z0-9_]", "_", part.lower()) for part in parts if part)


@pytest.mark.parametrize("target", GETS)
def test_a_get_has_the_response_of_jolokia(target: str, both: dict[str, Done]) -> None:
    kafka, ours = (response(both[kind].side.get(target)) for kind in ("kafka", "kpybroker"))
    assert ours == kafka


@pytest.mark.parametrize("body", POSTS)
def test_a_post_has_the_response_of_jolokia(body: str, both: dict[str, Done]) -> None:
    kafka, ours = (response(both[kind].side.post(body.encode())) for kind in ("kafka", "kpybroker"))
    assert ours == kafka


@pytest.mark.parametrize(("request_", "kafkas", "our"), DIFFERENT)
def test_what_gets_another_response_on_purpose(request_: str, kafkas: Any, our: Any, both: dict[str, Done]) -> None:
    for kind, expected in (("kafka", kafkas), ("kpybroker", our)):
        side = both[kind].side
        _, found = side.get(request_) if request_.startswith("/") else side.post(request_.encode())
        if isinstance(expected, list):
            assert [one["status"] for one in found] == expected
        else:
            assert {key: found[key] for key in expected} == expected


def response(found: tuple[int, Any]) -> Any:
    """HTTP's status and the body, without the time and Java's stack. MBeans are in no order."""
    status, body = found
    return status, without_chance(body)


def without_chance(body: Any) -> Any:
    if isinstance(body, dict):
        kept = {key: without_chance(value) for key, value in body.items() if key not in ("timestamp", "stacktrace")}
        if "error" in kept:  # the names of all MBeans that were tried
            kept["error"] = re.sub(r"(found on MBeans) \[.*\]", r"\1 [...]", kept["error"])
        return kept
    if isinstance(body, list):
        return sorted((without_chance(value) for value in body), key=str)
    return body


def test_state_changes_at_trace_are_kafkas(both: dict[str, Done]) -> None:
    """Of the topics of the work, whose controller and replicas are this one broker. Ours has no lines of responses."""
    theirs, mine = (Counter(changes(both[kind].log)) for kind in ("kafka", "kpybroker"))
    assert theirs.total() > 50
    only_kafkas = [line for line in sorted((theirs - mine).elements()) if "] Received response " not in line]
    assert not only_kafkas
    assert not sorted((mine - theirs).elements()), "only ours"


def changes(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if (match := CHANGES.search(line)) and re.search(rf"\b{NAME}\b", match[1]):
            change = match[1]
            for pattern, replaced in BY_CHANCE:
                change = pattern.sub(replaced, change)
            yield change
