"""Administration of topics: create, grow, delete, and creation on first use. Kafka's `ZkAdminManager`.

Every command ends in a write to the tree (`/brokers/topics/<t>`, `/admin/delete_topics/<t>`), which any broker may
make. The controller reacts, and the response waits until this broker's metadata shows the result or the client's
timeout is over. Nothing is kept here: two requests for the same topic meet in the tree.

Not here: what is refused with which text (`topic_refusals`), authorization, and the shapes of requests and responses
(`handlers.topics`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.broker.cluster import topic_refusals as refusals
from kpybroker.broker.cluster.registration import random_uuid
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget, next_slice
from kpybroker.broker.requests.log_fields import client_may_leave
from kpybroker.broker.requests.tree_failures import error_of
from kpybroker.config.keys.releases import is_kafka_4
from kpybroker.config.topic import UnknownTopicConfig, validate_topic_props
from kpybroker.config.values import ConfigError
from kpybroker.coordination.tree import retry_until_connected
from kpybroker.core import topic_names
from kpybroker.core import tree as t
from kpybroker.core.controller.events import ApiError
from kpybroker.core.placement import Assignment, BrokerMetadata, assign_replicas_to_brokers
from kpybroker.wire import znodes
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataCache, MetadataSnapshot
    from kpybroker.broker.loop.host import Host
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.core.security.quotas import MutationShare

logger = logging.getLogger("kafka.server.ZkAdminManager")

USE_DEFAULT = -1
"""As number of partitions or replication factor: the broker's configured default (KIP-464)."""

OK = ApiError(ErrorCode.NONE)
TIMED_OUT = ApiError(ErrorCode.REQUEST_TIMED_OUT)

DELETION_WAIT_S = 1.0
"""How long DeleteTopics waits for the znodes of topics that are gone from the metadata."""

NOT_YET = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER)
"""Of a topic that is created on first use: it will have a leader, or the client asks again."""

AUTO_CREATE_WAIT_S = 0.5
"""How long Metadata and FindCoordinator wait for a topic that they have just created."""


class NewTopic(NamedTuple):
    """`assignments` None: placed by the broker. A value of None in `configs` is refused, as in Kafka."""

    name: str
    num_partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str | None] = MappingProxyType({})


class CreatedTopic(NamedTuple):
    """The result for one topic. With an error the other fields have no meaning."""

    error: ApiError
    topic_id: bytes = ZERO_UUID
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = MappingProxyType({})


class NewPartitions(NamedTuple):
    """The wanted number of partitions of a topic; `assignments` are those of the added ones, in order."""

    topic: str
    total_count: int
    assignments: Sequence[Sequence[int]] | None = None


WaitUntilDeleted = Callable[[Iterable[str], float], Awaitable[None]]
"""Returns when the controller has deleted these topics completely, or after so many seconds."""


class TopicAdmin:
    """The commands. Each returns a result for every topic; only a failing tree raises."""

    def __init__(self, host: Host, metadata: MetadataCache, wait_until_deleted: WaitUntilDeleted) -> None:
        self._host = host
        self._metadata = metadata
        self._wait_until_deleted = wait_until_deleted

    # --- create

    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        timeout_ms: int,
        *,
        validate_only: bool = False,
        mutations: MutationShare | None = None,
    ) -> dict[str, CreatedTopic]:
        """Create each, then wait up to `timeout_ms` until every partition has a leader in this broker's metadata.

        `mutations` limits the partitions: those that it refuses are THROTTLING_QUOTA_EXCEEDED.
        """
        results: dict[str, CreatedTopic] = {}
        for topic in topics:
            try:
                results[topic.name] = await self._create(topic, validate_only, mutations)
            except KafkaError as error:
                logger.info("Error processing create topic request %s: %s", topic, error)
                results[topic.name] = CreatedTopic(refusals.api_error(error))
            await next_slice()
        if not validate_only:
            created = {n: r.num_partitions for n, r in results.items() if r.error == OK}
            for name in await self._still_leaderless({n: range(c) for n, c in created.items()}, timeout_ms):
                results[name] = results[name]._replace(error=TIMED_OUT)
        return results

    async def _create(
        self, topic: NewTopic, validate_only: bool, mutations: MutationShare | None = None
    ) -> CreatedTopic:
        if self._metadata.contains(topic.name):
            raise refusals.already_exists(topic.name)
        configs = refusals.present_configs(topic.configs)
        assignments = self._assign(topic)
        await next_slice()  # between loops over what may be 10 000 partitions
        await self._validate(topic.name, assignments, configs)
        topic_id = ZERO_UUID
        if not validate_only:
            self._charge(mutations, len(assignments))
            topic_id = random_uuid(self._host.random)
            await next_slice()
            await self._write_new_topic(topic.name, topic_id, assignments, configs)
        return CreatedTopic(OK, topic_id, len(assignments), len(next(iter(assignments.values()))), configs)

    def _charge(self, mutations: MutationShare | None, partitions: int) -> None:
        if mutations is not None and not mutations.take(partitions, self._host.clock.time_ms()):
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    def _assign(self, topic: NewTopic) -> Assignment:
        wants_number = topic.num_partitions != USE_DEFAULT or topic.replication_factor != USE_DEFAULT
        if topic.assignments:
            if wants_number:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used "
                    "at the same time.",
                )
            wanted = {partition: list(replicas) for partition, replicas in topic.assignments.items()}
            if self._as_kafka_4:
                refusals.check_replicas_of_kafka_4(wanted.values(), self._metadata.snapshot.brokers)
            return wanted
        config, brokers = self._host.config, self._brokers()
        partitions, factor = topic.num_partitions, topic.replication_factor
        refusals.check_count(partitions)
        if self._as_kafka_4:
            refusals.check_factor_of_kafka_4(factor, len(brokers))
        return assign_replicas_to_brokers(
            brokers,
            config.get_int("num.partitions") if partitions == USE_DEFAULT else partitions,
            config.get_int("default.replication.factor") if factor == USE_DEFAULT else factor,
            start_index=self._host.random.randrange(max(len(brokers), 1)),
            replica_shift=self._host.random.randrange(max(len(brokers), 1)),
        )

    @property
    def _as_kafka_4(self) -> bool:
        return is_kafka_4(self._host.config.release)

    def _brokers(self) -> list[BrokerMetadata]:
        brokers = self._metadata.snapshot.brokers
        return [BrokerMetadata(broker_id, brokers[broker_id].rack) for broker_id in sorted(brokers)]

    async def _validate(self, name: str, assignments: Assignment, configs: Mapping[str, str]) -> None:
        """AdminZkClient.validateTopicCreate. Raises KafkaError."""
        refusals.check_name(name)
        deleting, existing = await self._submit(
            t.Exists(znodes.delete_topic_path(name)), t.Exists(znodes.topic_path(name))
        )
        if deleting is not None:
            raise refusals.marked_for_deletion(name)
        if existing is not None:
            raise refusals.already_exists(name)
        if topic_names.has_collision_chars(name):
            (listed,) = await self._submit(t.Children(znodes.TOPICS))
            assert isinstance(listed, t.NodeChildren)
            # The topic itself may be created since the look above.
            refusals.check_collisions(name, listed.names, as_kafka_4=self._as_kafka_4)
        refusals.check_assignments(assignments)
        try:
            validate_topic_props(configs, self._host.config.log_defaults, self._host.config.release)
        except (ConfigError, UnknownTopicConfig) as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None

    async def _write_new_topic(
        self, name: str, topic_id: bytes, assignments: Assignment, configs: Mapping[str, str]
    ) -> None:
        """Configuration and assignment in one multi (two writes in Kafka, which may leave an orphan)."""
        partitions = {p: znodes.PartitionAssignment(tuple(replicas)) for p, replicas in assignments.items()}
        await next_slice()
        topic = t.Create(znodes.topic_path(name), znodes.encode_topic(znodes.TopicAssignment(topic_id, partitions)))
        path, data = znodes.config_path(znodes.CONFIG_TOPICS, name), znodes.encode_config(configs)
        logger.info(
            "Creating topic %s with configuration %s and initial partition assignment %s",
            name,
            dict(configs),
            assignments,
        )
        # An interrupted deletion may have left a configuration: then it is replaced.
        for config in (t.Create(path, data), t.SetData(path, data)):
            (result,) = await self._perform(t.Multi((config, topic)))
            if isinstance(result, tuple):
                return
            refused = result.error if isinstance(result, t.MultiFailed) else result
            if isinstance(refused, t.NodeExists) and refused.path == path:
                continue
            if isinstance(refused, t.NodeExists):
                await self._settle_existing(name, topic_id)
                return
            raise _tree_failed(refused)

    async def _settle_existing(self, name: str, topic_id: bytes) -> None:
        """The topic exists, by another request or by our own write whose response was lost: its id says which."""
        (found,) = await self._submit(t.Get(znodes.topic_path(name)))
        if isinstance(found, t.NodeData) and znodes.decode_topic(name, found.data).topic_id == topic_id:
            return
        raise refusals.already_exists(name)

    # --- create on first use

    async def auto_create(
        self, names: Iterable[str], wait_s: float = AUTO_CREATE_WAIT_S, mutations: MutationShare | None = None
    ) -> dict[str, ErrorCode]:
        """Create missing topics with their defaults, internal topics with those that coordinators need.

        NONE for a topic that has leaders within `wait_s`, LEADER_NOT_AVAILABLE for one that will have them, or that a
        client that asks again creates; otherwise the error. (Kafka never waits: see docs/reference/guarantees.md. The
        client's retry would cost it 100 ms.) A topic that was deleted before is not waited for: a client that checks
        that it is gone must not find it again.
        """
        wanted = list(names)
        again = {name for name in wanted if self._metadata.was_deleted(name)}
        config = self._host.config
        results = await self.create_topics(
            [_auto_topic(config, name) for name in wanted if name in again], 0, mutations=mutations
        )
        results |= await self.create_topics(
            [_auto_topic(config, name) for name in wanted if name not in again], int(wait_s * 1000), mutations=mutations
        )
        codes: dict[str, ErrorCode] = {}
        for name in wanted:
            code = results[name].error.code
            if code is ErrorCode.TOPIC_ALREADY_EXISTS:
                code = await self._wait_for_other_creation(name, 0 if name in again else wait_s)
            codes[name] = ErrorCode.LEADER_NOT_AVAILABLE if code in NOT_YET else code
        return codes

    async def _wait_for_other_creation(self, name: str, wait_s: float) -> ErrorCode:
        """Another request is creating it at this moment."""

        def is_there(snapshot: MetadataSnapshot) -> bool:
            partitions = snapshot.topics.get(name)
            return partitions is not None and all(snapshot.has_leader(name, p) for p in partitions)

        ready = await self._metadata.wait_until(is_there, wait_s)
        return ErrorCode.NONE if ready else ErrorCode.LEADER_NOT_AVAILABLE

    # --- delete

    async def delete_topics(
        self, names: Iterable[str], timeout_ms: int, mutations: MutationShare | None = None
    ) -> dict[str, ErrorCode]:
        """Mark each for deletion, then wait up to `timeout_ms` until they are gone from this broker's metadata.

        Kafka responds at that point, and its clients may find the name in use for a moment ("is marked for deletion").
        Here the response waits up to `DELETION_WAIT_S` longer, until the znodes are gone as well.
        """
        results: dict[str, ErrorCode] = {}
        for name in names:
            try:
                self._charge(mutations, self._metadata.partition_count(name) or 0)
                results[name] = await self._mark_for_deletion(name)
            except KafkaError as error:
                results[name] = error.code
        marked = [name for name, code in results.items() if code is ErrorCode.NONE]

        def gone(snapshot: MetadataSnapshot) -> bool:
            return not any(name in snapshot.topics for name in marked)

        if timeout_ms > 0:
            with client_may_leave():
                await self._metadata.wait_until(gone, timeout_ms / 1000)
                await self._wait_until_deleted(marked, min(timeout_ms / 1000, DELETION_WAIT_S))
            marked = [name for name in marked if self._metadata.contains(name)]
        for name in marked:
            results[name] = ErrorCode.REQUEST_TIMED_OUT
        return results

    async def _mark_for_deletion(self, name: str) -> ErrorCode:
        if await self._topic_node(name) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        (result,) = await self._perform(t.Create(znodes.delete_topic_path(name)))
        if isinstance(result, t.TreeError) and not isinstance(result, t.NodeExists):
            raise _tree_failed(result)
        # It may be marked already: this request waits for the same deletion.
        return ErrorCode.NONE

    # --- grow

    async def create_partitions(
        self,
        wanted: Iterable[NewPartitions],
        timeout_ms: int,
        *,
        validate_only: bool = False,
        mutations: MutationShare | None = None,
    ) -> dict[str, ApiError]:
        """Add partitions to each, then wait up to `timeout_ms` until all partitions have a leader in the metadata."""
        results: dict[str, ApiError] = {}
        grown: dict[str, range] = {}
        budget = YieldBudget()
        for new in wanted:
            await budget.spend(4 * ELEMENT)
            try:
                await self._grow(new, validate_only, mutations)
            except KafkaError as error:
                results[new.topic] = refusals.api_error(error)
            else:
                results[new.topic] = OK
                grown[new.topic] = range(new.total_count)
        if not validate_only:
            for name in await self._still_leaderless(grown, timeout_ms):
                results[name] = TIMED_OUT
        return results

    async def _grow(self, new: NewPartitions, validate_only: bool, mutations: MutationShare | None) -> None:
        while not await self._grew(new, validate_only, mutations):
            mutations = None  # the topic was changed at the same time: read and check it again, and count it once

    async def _grew(self, new: NewPartitions, validate_only: bool, mutations: MutationShare | None) -> bool:
        """False if the topic was changed since it was read, perhaps by this very write before a lost connection."""
        found = await self._topic_node(new.topic)
        if not isinstance(found, t.NodeData):
            raise refusals.unknown_topic(new.topic, as_kafka_4=self._as_kafka_4)
        current = znodes.decode_topic(new.topic, found.data)
        await next_slice()  # between loops over what may be 10 000 partitions
        added = self._assign_new_partitions(new, current)
        await next_slice()
        if validate_only:
            return True
        self._charge(mutations, len(added))
        partitions = dict(current.partitions)
        partitions.update({p: znodes.PartitionAssignment(tuple(r)) for p, r in added.items()})
        await next_slice()
        logger.info(
            "Creating %d partitions for '%s' with the following replica assignment: %s.", len(added), new.topic, added
        )
        data = znodes.encode_topic(znodes.TopicAssignment(current.topic_id, partitions))
        await next_slice()
        op = t.SetData(znodes.topic_path(new.topic), data, found.stat.version)
        (result,) = await self._perform(op)
        if isinstance(result, t.TreeError) and not isinstance(result, t.BadVersion):
            raise _tree_failed(result)
        return not isinstance(result, t.BadVersion)

    def _assign_new_partitions(self, new: NewPartitions, current: znodes.TopicAssignment) -> Assignment:
        refusals.check_growth(new.topic, current, new.total_count, as_kafka_4=self._as_kafka_4)
        old_count = len(current.partitions)
        brokers = self._brokers()
        first = current.partitions[0].replicas
        if new.assignments is not None:
            counts = (old_count, new.total_count, len(first))
            ids = {broker.id for broker in brokers}
            return refusals.check_new_assignments(new.assignments, *counts, ids, as_kafka_4=self._as_kafka_4)
        start = next((i for i, broker in enumerate(brokers) if broker.id >= first[0]), 0)
        return assign_replicas_to_brokers(
            brokers,
            new.total_count - old_count,
            len(first),
            start_index=start,
            replica_shift=start,
            start_partition_id=old_count,
        )

    # --- waiting, reading

    async def _still_leaderless(self, topics: Mapping[str, range], timeout_ms: int) -> list[str]:
        """Wait for leaders (DelayedCreatePartitions); returns the topics that lack one after `timeout_ms`."""

        def lacks_leader(snapshot: MetadataSnapshot, name: str) -> bool:
            return not all(snapshot.has_leader(name, partition) for partition in topics[name])

        def all_led(snapshot: MetadataSnapshot) -> bool:
            return not any(lacks_leader(snapshot, name) for name in topics)

        if not topics:
            return []
        if timeout_ms <= 0:
            return list(topics)
        with client_may_leave():
            if await self._metadata.wait_until(all_led, timeout_ms / 1000):
                return []
        return [name for name in topics if lacks_leader(self._metadata.snapshot, name)]

    async def _topic_node(self, name: str) -> t.Result:
        """None for a missing one, and for a name that would be a path to something else."""
        if not topic_names.is_valid(name):
            return None
        (found,) = await self._submit(t.Get(znodes.topic_path(name)))
        return found

    async def _submit(self, *ops: t.ReadOperation) -> list[t.Result]:
        """Read all; a missing node is None."""
        results: list[t.Result] = []
        for result in await self._perform(*ops):
            if isinstance(result, t.NoNode):
                results.append(None)
            elif isinstance(result, t.TreeError):
                raise _tree_failed(result)
            else:
                results.append(result)
        return results

    async def _perform(self, *ops: t.Operation) -> list[t.Result | t.TreeError]:
        """Raises NOT_CONTROLLER if the session has ended, or ends before there is a connection again."""
        try:
            results = await retry_until_connected(self._host.tree, ops)
        except t.SessionExpired:
            results = [t.SessionExpired()]
        if any(isinstance(result, t.SessionExpired) for result in results):
            logger.warning("The session of the coordination tree ended during a topic change")
            raise error_of(t.SessionExpired())
        return results


def _tree_failed(failure: object) -> KafkaError:
    logger.error("The tree refused or lost a topic change: %r", failure)
    return error_of(failure)


def _auto_topic(config: BrokerConfig, name: str) -> NewTopic:
    """The topic with the configuration it gets when it is created on first use
    (AutoTopicCreationManager.creatableTopic).
    """
    if name == topic_names.GROUP_METADATA_TOPIC_NAME:
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.get_int("offsets.topic.segment.bytes")),
        }
        return NewTopic(
            name,
            config.get_int("offsets.topic.num.partitions"),
            config.get_int("offsets.topic.replication.factor"),
            configs=configs,
        )
    if name == topic_names.TRANSACTION_STATE_TOPIC_NAME:
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.get_int("transaction.state.log.min.isr")),
            "segment.bytes": str(config.get_int("transaction.state.log.segment.bytes")),
            "unclean.leader.election.enable": "false",
        }
        return NewTopic(
            name,
            config.get_int("transaction.state.log.num.partitions"),
            config.get_int("transaction.state.log.replication.factor"),
            configs=configs,
        )
    if name == topic_names.SHARE_GROUP_STATE_TOPIC_NAME:
        configs = {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": str(config.get_int("share.coordinator.state.topic.min.isr")),
            "retention.ms": "-1",
            "segment.bytes": str(config.get_int("share.coordinator.state.topic.segment.bytes")),
        }
        return NewTopic(
            name,
            config.get_int("share.coordinator.state.topic.num.partitions"),
            config.get_int("share.coordinator.state.topic.replication.factor"),
            configs=configs,
        )
    return NewTopic(name)
