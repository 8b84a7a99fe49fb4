"""What differs between the MBeans of two brokers after the same work, in words; nothing that has a listed reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from kpybroker.metrics.jolokia.names import parse_name
from tests.metrics import absent

MBeans = Mapping[str, Mapping[str, Any]]

OF_THE_MACHINE: Final = {
    "*:name=*Percent,*": "the machine",
    "kafka.server:type=KafkaServer,name=linux-disk-*": "the machine",
    "kafka.log:type=LogCleanerManager,name=time-since-last-run-ms": "the clock",
    "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs": "other events",
    "kafka.network:type=RequestMetrics,request=DescribeTransactions|FindCoordinator|InitProducerId,*": "repeated",
    "kafka.network:type=RequestMetrics,request=Metadata|ListGroups|Heartbeat,*": "the test's other clients",
}
"""Values that the work does not decide."""
ELSEWHERE: Final = {"kafka.network:type=RequestMetrics,request=ApiVersions,version=4,*": "Kafka's own clients"}
TIMES: Final = re.compile(r"name=(\w+TimeMs|RequestBytes),")


class Snapshot(NamedTuple):
    """All MBeans of one broker before and after the work."""

    before: MBeans
    after: MBeans


def properties_of(name: str) -> tuple[str, dict[str, str]]:
    parsed = parse_name(name)
    return parsed.domain, dict(parsed.properties)


def is_listed(name: str, listed: Mapping[str, str] = absent.MBEANS) -> bool:
    return absent.reason(*properties_of(name), listed) is not None


def only_here(kafka: MBeans, ours: MBeans) -> list[str]:
    """MBeans of ours that Kafka does not have."""
    return sorted(name for name in ours.keys() - kafka.keys() if not is_listed(name))


def only_there(kafka: Snapshot, ours: MBeans) -> list[str]:
    """MBeans of Kafka that have no reason to be missing.

    Here an API has its distributions from its first request on. What happened before the work, while coordinators were
    loaded, is not compared.
    """
    missing = sorted(name for name in kafka.after.keys() - ours.keys() if not is_listed(name))
    return [name for name in missing if not _is_idle(kafka, name)]


def _is_idle(kafka: Snapshot, name: str) -> bool:
    of_requests = "type=RequestMetrics" in name
    if is_listed(name, ELSEWHERE):
        return True
    if of_requests and TIMES.search(name) is None:
        return bool(growth(kafka, name) == 0)
    return (of_requests or is_listed(name, absent.COUNTS)) and kafka.after[name].get("Count") == 0


def attributes_that_differ(kafka: MBeans, ours: MBeans) -> list[str]:
    """Names of MBeans with the attributes that only one has."""
    found = []
    for name in sorted(kafka.keys() & ours.keys()):
        extra = sorted(ours[name].keys() - kafka[name].keys())
        missing = [one for one in sorted(kafka[name].keys() - ours[name].keys()) if not _is_absent(name, one)]
        if extra or missing:
            found.append(f"{name}: only ours {extra}, only Kafka's {missing}")
    return found


def _is_absent(name: str, attribute: str) -> bool:
    for pattern in absent.ATTRIBUTES:
        if any(fnmatchcase(attribute, one) for one in pattern.split("|")):
            is_of_sockets = pattern.startswith("*-rate")
            return is_of_sockets == ("type=socket-server-metrics" in name)
    return False


def counts_that_differ(kafka: Snapshot, ours: Snapshot) -> Iterator[str]:
    """Growth of counts, and values of gauges."""
    for name in sorted(kafka.after.keys() & ours.after.keys()):
        if is_listed(name, absent.COUNTS) or is_listed(name, OF_THE_MACHINE):
            continue
        for attribute in ("Count", "Value"):
            theirs, mine = (_value(side, name, attribute) for side in (kafka, ours))
            if theirs != mine:
                yield f"{name} {attribute}: Kafka {theirs}, ours {mine}"


def _value(side: Snapshot, name: str, attribute: str) -> Any:
    value = side.after[name].get(attribute)
    if attribute == "Count" and value is not None:
        return value - side.before.get(name, {}).get(attribute, 0)
    return value


def growth(side: Snapshot, name: str) -> Any:
    """Of a count."""
    return _value(side, name, "Count")
