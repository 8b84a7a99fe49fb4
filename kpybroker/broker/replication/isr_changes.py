"""Asking the controller for changes of the ISR: Kafka's ``AlterPartitionManager`` (KIP-497).

One request is in flight at a time; changes that are submitted in the meantime go into the next one together. A request
is repeated until a controller responds, a partition's change until it is decided or void
(`core.replication.replica.LeaderState.refused`).

Not here: when to ask for a change, and what its outcome does (`core.replication.replica`, `partition`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

import trio

from kpybroker.core import metadata_version as mv
from kpybroker.core.replication.replica import IsrChange, Verdict
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.api import ApiKey
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.peers.controller_channel import ControllerChannel
    from kpybroker.broker.peers.peers import Peers
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.broker.replication.traffic import Traffic

logger = logging.getLogger("kafka.server.DefaultAlterPartitionManager")

RETRY_S = 0.05
LAST_VERSION_WITH_NAMES = 1
BROKER_EPOCHS_SINCE = 3
TOPIC_IDS_SINCE = 2


class _Change(NamedTuple):
    partition: Partition
    change: IsrChange


class IsrChanges:
    """Pending changes, at most one a partition. `submit` never waits; `run` is the one task that sends them."""

    def __init__(self, host: Host, peers: Peers, traffic: Traffic) -> None:
        self._host = host
        self._traffic = traffic
        self._peers = peers
        self._pending: dict[PartitionKey, _Change] = {}
        self._submitted = trio.Event()

    def submit(self, partition: Partition, change: IsrChange) -> None:
        """Ask for a change; it replaces an older one of the same partition, which is void."""
        self._pending[partition.topic, partition.index] = _Change(partition, change)
        self._submitted.set()

    async def run(self) -> None:
        """Send what is submitted, for as long as the broker runs."""
        channel = self._peers.controller_channel("alter-partition")
        try:
            while True:
                while self._pending:  # also what a run before this one, which failed, has left
                    if not await self._ask(channel, dict(self._pending)):
                        await trio.sleep(RETRY_S)
                await self._submitted.wait()
                self._submitted = trio.Event()
        finally:
            channel.close()

    async def _ask(self, channel: ControllerChannel, asked: dict[PartitionKey, _Change]) -> bool:
        """One request about all of these; False if some must be retried, a little later."""
        request, version = self._request(asked)
        response: AlterPartitionResponse = await channel.ask(ApiKey.ALTER_PARTITION, request, version)
        if response.error_code:
            level = logging.ERROR if response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED else logging.WARNING
            logger.log(
                level,
                "Controller refused AlterPartition with %s; retrying",
                ErrorCode(response.error_code).name,
            )
            return False
        settled = True
        ids = {item.partition.topic_id: item.partition.topic for item in asked.values()}
        for topic in response.topics:
            name = topic.topic_name if version < TOPIC_IDS_SINCE else ids.get(topic.topic_id, "")
            for data in topic.partitions:
                item = asked.get((name, data.partition_index))
                if item is not None and self._settle(item, data) is Verdict.RETRY:
                    settled = False
        return settled

    def _settle(self, item: _Change, data: AlterPartitionResponse.PartitionData) -> Verdict:
        """Take the result for one partition; the change stays pending only if it must be retried."""
        partition, change = item
        leader = partition.leader
        if leader is None:
            verdict = Verdict.DROPPED
        elif data.error_code:
            verdict = leader.refused(change, data.error_code)
            self._traffic.failed_isr_updates += 1
            logger.info(
                "ISR change of %s-%d to %s was refused with %s",
                partition.topic,
                partition.index,
                sorted(change.isr),
                ErrorCode(data.error_code).name,
            )
            if verdict is not Verdict.RETRY:
                partition.advance_again()
        else:
            before = leader.isr
            verdict = leader.agreed(change, data.leader_epoch, data.partition_epoch, data.isr)
            if verdict is Verdict.COMMITTED:
                self._traffic.isr_changed(before, leader.isr)
                partition.isr_committed()
        key = (partition.topic, partition.index)
        if verdict is not Verdict.RETRY and self._pending.get(key) is item:
            del self._pending[key]
        return verdict

    def _request(self, asked: dict[PartitionKey, _Change]) -> tuple[AlterPartitionRequest, int]:
        version = mv.alter_partition_version(mv.parse(self._host.config.get_str("inter.broker.protocol.version")))
        if any(item.partition.topic_id == ZERO_UUID for item in asked.values()):
            version = min(version, LAST_VERSION_WITH_NAMES)
        request = AlterPartitionRequest(broker_id=self._host.node_id, broker_epoch=self._host.broker_epoch)
        topics: dict[str, AlterPartitionRequest.TopicData] = {}
        for (name, index), (partition, change) in asked.items():
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = AlterPartitionRequest.TopicData(topic_name=name, topic_id=partition.topic_id)
                request.topics.append(topic)
            data = AlterPartitionRequest.PartitionData(
                partition_index=index, leader_epoch=change.leader_epoch, partition_epoch=change.partition_epoch
            )
            if version >= BROKER_EPOCHS_SINCE:
                # Only KRaft uses broker epochs in the ISR (KIP-903): in ZooKeeper mode Kafka leaves them out too.
                data.new_isr_with_epochs = [
                    AlterPartitionRequest.BrokerState(broker_id=broker_id) for broker_id in change.isr
                ]
            else:
                data.new_isr = list(change.isr)
            topic.partitions.append(data)
        return request, version
