"""The two brokers that are compared: real Kafka 3.9.1 on ZooKeeper, and the one under test, from one configuration."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compat_tests.differential.compare import differences, report
from compat_tests.differential.normalise import Normaliser
from compat_tests.differential.play import Heard, Player
from compat_tests.differential.script import Script, ask, script
from compat_tests.support.services import AS_KAFKA_3_9, Broker, ZooKeeper
from kpybroker.broker.requests.served.apis import SERVED
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


class Side:
    """One broker and what is known of it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.port = broker.port
        self.data_dir = broker.data_dir

    def play(self, played: Script, version: int) -> list[Heard]:
        normaliser = Normaliser(self.port, self.data_dir)
        names = {"t": f"{played.name}-v{version}"}
        heard = Player(self.port, played, version, names).play()
        return [Heard(one.label, one.api, normaliser.apply(one.api, one.response)) for one in heard]


class Pair:
    """Both brokers, started and with their group coordinators loaded."""

    def __init__(self, directory: Path, kind: str, coordination: str, **changes: str) -> None:
        """`changes`: keys of the brokers' configuration with `_` for `.`, next to OVERRIDES."""
        overrides = OVERRIDES | {name.replace("_", "."): value for name, value in changes.items()}
        self._zookeeper = ZooKeeper(directory / "zookeeper")
        self._zookeeper.start()
        on_tree = f"{self._zookeeper.connect}/compared"
        tested = on_tree if kind == "kafka" or coordination == "zookeeper" else None
        brokers = [
            Broker("kafka", directory / "reference", f"{self._zookeeper.connect}/reference", overrides),
            Broker(kind, directory / "compared", tested, overrides | (AS_KAFKA_3_9 if tested is None else {})),
        ]
        self._sides = [Side(broker) for broker in brokers]
        try:
            for broker in brokers:
                broker.start()
            assert not self.compare(READY, 0)
        except BaseException:
            self.close()
            raise

    def compare(self, played: Script, version: int) -> str:
        """What differs, in words; empty when nothing does. Both play at once, as some scripts wait for seconds."""
        assert version <= SERVED[played.api][1] or played.api is ApiKey.API_VERSIONS
        with ThreadPoolExecutor() as threads:
            reference, compared = threads.map(lambda side: side.play(played, version), self._sides)
        return report(differences(played.name, reference, compared))

    def close(self) -> None:
        for side in self._sides:
            side.broker.service.kill()
        self._zookeeper.stop()
