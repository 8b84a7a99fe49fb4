"""The two brokers that are compared: real Kafka, and the one under test, from one configuration.

Kafka is 3.9.1 on ZooKeeper, or 4.3.1 in KRaft mode for scripts about what 3.9 does not have; then its features are
finalized on the broker under test, as it is in a new cluster of Kafka 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import pytest

from compat_tests.differential.allowed import ALLOWED, Allowed
from compat_tests.differential.compare import differences, report
from compat_tests.differential.kafka_4.allowed import ALLOWED_NEXT_TO_4
from compat_tests.differential.normalise import Normaliser
from compat_tests.differential.play import Heard, Player
from compat_tests.differential.script import Reference, Script, ask, script
from compat_tests.support.kraft import KraftBroker
from compat_tests.support.services import AS_KAFKA_3_9, Broker, Service, ZooKeeper
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.config.keys.own import KAFKA_VERSIONS
from kpybroker.core.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from kpybroker.wire.api import ApiKey

OVERRIDES = {
    # five partitions of groups are loaded sooner than fifty
    "offsets.topic.num.partitions": "5",
    # members of the scripts go away without a word
    "group.min.session.timeout.ms": "1000",
    "group.max.size": "4",
    "message.max.bytes": "100000",
    "transaction.state.log.num.partitions": "5",
    # the records of the scripts are of 2023: retention would take them in mid-script, and what DeleteRecords left
    "log.retention.hours": "-1",
    "log.retention.check.interval.ms": "86400000",
    "log.initial.task.delay.ms": "86400000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    # Requests are handled one after the other, in the order in which they came. With Kafka's three and eight threads a
    # request that is sent without waiting for the response of another may overtake it, and two that touch one partition
    # mix: Partition.readRecords takes the high watermark before the records, so a fetch during an append can return new
    # records with the high watermark from before them.
    "num.network.threads": "1",
    "num.io.threads": "1",
}
OVERRIDES_NEXT_TO_4 = {
    # one coordinator knows a topic of a script: then it knows it for every group
    "offsets.topic.num.partitions": "1",
    "log.retention.ms": "-1",  # here -1 hours are an hour ago
    # targets are computed in the heartbeat that needs them
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.max.size": "4",
    "group.consumer.migration.policy": "bidirectional",
    # the same of share groups; their sessions are few, and their locks may be short
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.assignment.interval.ms": "0",
    "group.share.max.size": "10",
    "group.share.max.share.sessions": "12",
    "group.share.min.record.lock.duration.ms": "1000",
    # and of streams groups, whose first members wait for no others
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.max.size": "4",
}

AUTHORIZER = "authorizer.class.name"
ALLOWING = {
    AUTHORIZER: "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""An authorizer, to which no client is a stranger."""
AS_IN_3_9 = {AUTHORIZER: "kafka.security.authorizer.AclAuthorizer"}
"""What the same is called with ZooKeeper."""

FIND = ApiKey.FIND_COORDINATOR

READY = script(
    "ready",
    FIND,
    "the first group and the first transactional id make their topics and coordinators",
    ask(FIND, v=0, key="{t}", until={"error_code": 0}),
    *(
        ask(ApiKey.HEARTBEAT, v=0, group_id=f"{{t}}-{n}", member_id="x", until={"error_code": 25})
        for n in range(20)  # enough to meet each of the five coordinators
    ),
    ask(FIND, v=1, key="{t}", key_type=1, until={"error_code": 0}),
    *(
        # INVALID_PRODUCER_ID_MAPPING comes only from a coordinator that is loaded
        ask(ApiKey.ADD_OFFSETS_TO_TXN, v=2, transactional_id=f"{{t}}-{n}", group_id="g", until={"error_code": 49})
        for n in range(20)
    ),
    # the first id waits for a block of ids from the controller
    ask(ApiKey.INIT_PRODUCER_ID, v=0, transactional_id=None, transaction_timeout_ms=1, until={"error_code": 0}),
    versions=(0, 0),
)


FEATURED = script(
    "featured",
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    "all kinds of groups are finalized; a broker on ZooKeeper finalizes nothing unasked",
    ask(
        ApiKey.UPDATE_FEATURES,
        v=1,
        feature_updates=[
            {"feature": feature, "max_version_level": 1, "upgrade_type": 1}
            for feature in (GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION)
        ],
        compared=False,
    ),
    ask(ApiKey.CONSUMER_GROUP_DESCRIBE, v=0, group_ids=["{t}"], until={"groups.0.error_code": 69}),
    versions=(0, 0),
    reference=Reference.KAFKA_4_3,
)


SEGMENT_BYTES, SEGMENT_BYTES_OF_KAFKA_4 = "segment.bytes", "internal.segment.bytes"
"""What segments below 1 MB are set with."""


def skip_where_absent(config: pytest.Config, reference: Reference) -> None:
    """Where our broker stands in the place of a release before 4.3, there is nothing to compare with 4.3."""
    release = config.getoption("--kafka-version")
    if reference is Reference.KAFKA_4_3 and release not in (None, KAFKA_VERSIONS[-1]):
        pytest.skip(f"a broker in the place of Kafka {release} has not what is compared")


class Compared(Protocol):
    """A broker of any kind."""

    service: Service
    port: int
    data_dir: Path

    def start(self) -> None: ...


class Side:
    """One broker and what is known of it."""

    def __init__(self, broker: Compared) -> None:
        self.broker = broker

    def play(self, played: Script, version: int) -> list[Heard]:
        is_next_to_4 = played.reference is Reference.KAFKA_4_3
        normaliser = Normaliser(self.broker.port, self.broker.data_dir, is_next_to_4=is_next_to_4)
        is_kraft = isinstance(self.broker, KraftBroker)
        names = {
            "t": f"{played.name}-v{version}",
            "segment_bytes": SEGMENT_BYTES_OF_KAFKA_4 if is_kraft else SEGMENT_BYTES,
        }
        heard = Player(self.broker.port, played, version, names).play()
        return [Heard(one.label, one.api, normaliser.apply(one.api, one.response)) for one in heard]


class Pair:
    """Both brokers, started and with their group coordinators loaded."""

    def __init__(
        self,
        directory: Path,
        kind: str,
        coordination: str,
        reference: Reference = Reference.KAFKA_3_9,
        changes: Mapping[str, str] | None = None,
        is_secured: bool = False,
    ) -> None:
        """`changes`: keys of the brokers' configuration, next to OVERRIDES."""
        overrides = OVERRIDES | dict(changes or {})
        self._authorizers = ALLOWING if is_secured else {}
        self._zookeeper: ZooKeeper | None = None
        self._directory = directory
        self._allowed = ALLOWED
        if reference is Reference.KAFKA_3_9:
            brokers = self._next_to_3_9(kind, coordination, overrides)
        else:
            self._allowed = ALLOWED_NEXT_TO_4
            brokers = self._next_to_4(kind, coordination, overrides | OVERRIDES_NEXT_TO_4)
        self._sides = [Side(broker) for broker in brokers]
        try:
            for broker in brokers:
                broker.start()
            assert not self.compare(READY, 0)
            if reference is Reference.KAFKA_4_3:
                assert not self.compare(FEATURED, 0)
        except BaseException:
            self.close()
            raise

    def _next_to_3_9(self, kind: str, coordination: str, overrides: Mapping[str, str]) -> list[Compared]:
        tested = self._chroot("compared") if kind == "kafka" or coordination == "zookeeper" else None
        return [
            Broker("kafka", self._directory / "reference", self._chroot("reference"), dict(overrides)),
            Broker(
                kind,
                self._directory / "compared",
                tested,
                {**overrides, **(AS_KAFKA_3_9 if tested is None else {})},
            ),
        ]

    def _next_to_4(self, kind: str, coordination: str, overrides: Mapping[str, str]) -> list[Compared]:
        of_kafka = {**overrides, **self._authorizers}
        kafka = KraftBroker(self._directory / "reference", of_kafka, node_id=0)
        if kind == "kafka":
            return [kafka, KraftBroker(self._directory / "compared", of_kafka, node_id=0)]
        tested = self._chroot("compared") if coordination == "zookeeper" else None
        of_tested = {**of_kafka, **(AS_IN_3_9 if self._authorizers else {})}
        return [kafka, Broker(kind, self._directory / "compared", tested, of_tested)]

    def _chroot(self, name: str) -> str:
        if self._zookeeper is None:
            self._zookeeper = ZooKeeper(self._directory / "zookeeper")
            self._zookeeper.start()
        return f"{self._zookeeper.connect}/{name}"

    def compare(self, played: Script, version: int, more_allowed: Sequence[Allowed] = ()) -> str:
        """What differs, in words; empty when nothing does. Both play at once, as some scripts wait for seconds."""
        assert version <= SERVED[played.api][1] or played.api is ApiKey.API_VERSIONS
        with ThreadPoolExecutor() as threads:
            reference, compared = threads.map(lambda side: side.play(played, version), self._sides)
        return report(differences(played.name, reference, compared, (*self._allowed, *more_allowed)))

    def close(self) -> None:
        for side in self._sides:
            side.broker.service.kill()
        if self._zookeeper is not None:
            self._zookeeper.stop()
