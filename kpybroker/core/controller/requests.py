"""The requests of one transition to brokers, collected and then sent: ``ControllerBrokerRequestBatch``.

A batch makes at most one LeaderAndIsr, one UpdateMetadata and one StopReplica (two before version 3) a broker, in that
order. Versions follow `inter.broker.protocol.version`; a message is filled for the version it is sent in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from kpybroker.core import metadata_version as mv
from kpybroker.core.controller.context import ControllerContext
from kpybroker.core.controller.effects import PAUSE, TRACE, Procedure, Send, Settings, state_change
from kpybroker.core.controller.model import LeaderIsrAndControllerEpoch, ReplicaAssignment, during_delete
from kpybroker.core.state_texts import leader_and_isr_text, stop_replica_text
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest
from kpybroker.wire.messages.stop_replica import StopReplicaRequest
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest
from kpybroker.wire.yield_budget import WorkBudget
from kpybroker.wire.znodes import RECOVERED, BrokerRegistration, Endpoint

V = TypeVar("V")

PLAINTEXT = "PLAINTEXT"
SECURITY_PROTOCOL_IDS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

LeaderAndIsrState = LeaderAndIsrRequest.LeaderAndIsrPartitionState
UpdateMetadataState = UpdateMetadataRequest.UpdateMetadataPartitionState


class Stop(NamedTuple):
    """One replica in a StopReplica; the epoch is the leader's when the stop was decided."""

    leader_epoch: int
    delete: bool


class BrokerRequestBatch:
    """Filled during a transition, then sent once. Brokers that are not live at that time are left out."""

    __slots__ = (
        "_context",
        "_leader_and_isr",
        "_metadata_brokers",
        "_metadata_states",
        "_settings",
        "_stops",
    )

    def __init__(self, context: ControllerContext, settings: Settings) -> None:
        self._context = context
        self._settings = settings
        self._leader_and_isr: dict[int, dict[TopicPartition, LeaderAndIsrState]] = {}
        self._metadata_brokers: set[int] = set()
        self._metadata_states: dict[TopicPartition, UpdateMetadataState] = {}
        self._stops: dict[int, dict[TopicPartition, Stop]] = {}

    # --- filling

    def add_leader_and_isr(
        self,
        broker_ids: Iterable[int],
        partition: TopicPartition,
        info: LeaderIsrAndControllerEpoch,
        assignment: ReplicaAssignment,
        *,
        is_new: bool,
    ) -> None:
        """Send replicas their role, and every live broker the partition's metadata."""
        state, controller_epoch = info
        recovery = mv.is_leader_recovery_supported(self._settings.metadata_version)
        for broker_id in broker_ids:
            if broker_id < 0:
                continue
            states = self._leader_and_isr.setdefault(broker_id, {})
            earlier = states.get(partition)
            states[partition] = LeaderAndIsrState(
                topic_name=partition.topic,
                partition_index=partition.partition,
                controller_epoch=controller_epoch,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=list(state.isr),
                partition_epoch=state.partition_epoch,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding_replicas),
                removing_replicas=list(assignment.removing_replicas),
                is_new=is_new or (earlier is not None and earlier.is_new),
                leader_recovery_state=state.leader_recovery_state if recovery else RECOVERED,
            )
        self.add_update_metadata(self._context.live_brokers, (partition,))

    def add_stop_replica(self, broker_id: int, partition: TopicPartition, *, delete: bool) -> None:
        """Ask a broker to stop a replica, and with `delete` to delete its log as well."""
        if broker_id >= 0:
            stops = self._stops.setdefault(broker_id, {})
            earlier = stops.get(partition)
            delete = delete or (earlier is not None and earlier.delete)
            stops[partition] = Stop(self._context.leader_epoch(partition), delete)

    def add_update_metadata(self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]) -> None:
        """Partitions without a leader yet are left out: brokers receive them with their first leader."""
        self._metadata_brokers.update(broker_id for broker_id in broker_ids if broker_id >= 0)
        context = self._context
        for partition in partitions:
            leadership = context.partition_leadership_info.get(partition)
            if leadership is None:
                continue
            state, controller_epoch = leadership
            if context.is_topic_queued_for_deletion(partition.topic):
                state = during_delete(state.isr)
            replicas = context.replicas(partition)
            self._metadata_states[partition] = UpdateMetadataState(
                topic_name=partition.topic,
                partition_index=partition.partition,
                controller_epoch=controller_epoch,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=list(state.isr),
                zk_version=state.partition_epoch,
                replicas=list(replicas),
                offline_replicas=[r for r in replicas if not context.is_replica_online(r, partition)],
            )

    def add_update_metadata_paced(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> Procedure[None]:
        """The same for many partitions, with pauses."""
        budget = WorkBudget()
        for partition in partitions:
            if budget.is_spent():
                yield PAUSE
            self.add_update_metadata((), (partition,))
        self.add_update_metadata(broker_ids, ())

    # --- sending

    def send(self) -> Procedure[None]:
        """Send and clear what was collected: LeaderAndIsr, then UpdateMetadata, then StopReplica."""
        yield from self._send_leader_and_isr()
        yield from self._send_update_metadata()
        yield from self._send_stop_replica()

    def _log(self, message: str) -> Procedure[None]:
        yield state_change(self._settings, self._context.epoch, message)

    def _trace_leader_and_isr(self, broker_id: int, states: dict[TopicPartition, LeaderAndIsrState]) -> Procedure[None]:
        """A line for each partition."""
        for partition, state in states.items():
            kind = "become-leader" if state.leader == broker_id else "become-follower"
            yield state_change(
                self._settings,
                self._context.epoch,
                f"Sending {kind} LeaderAndIsr request {leader_and_isr_text(partition.topic, state)} to broker "
                f"{broker_id} for partition {partition}",
                TRACE,
            )

    def _trace_stops(self, broker_id: int, stops: dict[TopicPartition, Stop]) -> Procedure[None]:
        """A line for each partition."""
        for partition, stop in stops.items():
            text = stop_replica_text(partition.partition, stop.leader_epoch, delete=stop.delete)
            yield state_change(
                self._settings,
                self._context.epoch,
                f"Sending StopReplica request {text} to broker {broker_id} for partition {partition}",
                TRACE,
            )

    def _send_leader_and_isr(self) -> Procedure[None]:
        version = mv.leader_and_isr_version(self._settings.metadata_version)
        for broker_id, states in self._leader_and_isr.items():
            if broker_id not in self._context.live_brokers:
                continue
            if self._context.is_traced:
                yield from self._trace_leader_and_isr(broker_id, states)
            leading = sum(state.leader == broker_id for state in states.values())
            yield from self._log(
                f"Sending LeaderAndIsr request to broker {broker_id} with {leading} become-leader "
                f"and {len(states) - leading} become-follower partitions"
            )
            yield Send(broker_id, self._leader_and_isr_request(broker_id, states, version), version)
        self._leader_and_isr.clear()

    def _leader_and_isr_request(
        self, broker_id: int, states: dict[TopicPartition, LeaderAndIsrState], version: int
    ) -> LeaderAndIsrRequest:
        context = self._context
        request = LeaderAndIsrRequest(
            controller_id=self._settings.broker_id,
            controller_epoch=context.epoch,
            broker_epoch=context.live_broker_epochs[broker_id],
            live_leaders=self._leaders({state.leader for state in states.values()}),
        )
        if version < 2:
            request.ungrouped_partition_states = list(states.values())
            return request
        request.topic_states = [
            LeaderAndIsrRequest.LeaderAndIsrTopicState(
                topic_name=topic,
                topic_id=context.topic_ids.get(topic, ZERO_UUID),
                partition_states=partition_states,
            )
            for topic, partition_states in _by_topic(states).items()
        ]
        return request

    def _leaders(self, leader_ids: set[int]) -> list[LeaderAndIsrRequest.LeaderAndIsrLiveLeader]:
        leaders = []
        for leader_id in sorted(leader_ids & self._context.live_brokers.keys()):
            endpoint = endpoint_of(self._context.live_brokers[leader_id], self._settings.inter_broker_listener_name)
            if endpoint is not None:
                leaders.append(
                    LeaderAndIsrRequest.LeaderAndIsrLiveLeader(
                        broker_id=leader_id, host_name=endpoint.host, port=endpoint.port
                    )
                )
        return leaders

    def _send_update_metadata(self) -> Procedure[None]:
        if not self._metadata_brokers:
            return
        context = self._context
        version = mv.update_metadata_version(self._settings.metadata_version)
        yield from self._log(
            f"Sending UpdateMetadata request to brokers {_set(self._metadata_brokers)} "
            f"for {len(self._metadata_states)} partitions"
        )
        live_brokers = [self._update_metadata_broker(broker_id, version) for broker_id in context.live_brokers]
        ungrouped: list[UpdateMetadataState] = []
        topics: list[UpdateMetadataRequest.UpdateMetadataTopicState] = []
        if version < 5:
            ungrouped = list(self._metadata_states.values())
        else:
            topics = [
                UpdateMetadataRequest.UpdateMetadataTopicState(
                    topic_name=topic,
                    topic_id=context.topic_ids.get(topic, ZERO_UUID),
                    partition_states=partition_states,
                )
                for topic, partition_states in _by_topic(self._metadata_states).items()
            ]
        for broker_id in sorted(self._metadata_brokers & context.live_brokers.keys()):
            request = UpdateMetadataRequest(
                controller_id=self._settings.broker_id,
                controller_epoch=context.epoch,
                broker_epoch=context.live_broker_epochs[broker_id],
                ungrouped_partition_states=ungrouped,
                topic_states=topics,
                live_brokers=live_brokers,
            )
            yield Send(broker_id, request, version)
        self._metadata_brokers.clear()
        self._metadata_states.clear()

    def _update_metadata_broker(self, broker_id: int, version: int) -> UpdateMetadataRequest.UpdateMetadataBroker:
        broker = self._context.live_brokers[broker_id]
        if version == 0:
            # Version 0 has one address, that of the PLAINTEXT listener.
            plain = endpoint_of(broker, PLAINTEXT)
            return UpdateMetadataRequest.UpdateMetadataBroker(
                id=broker_id,
                v0_host="" if plain is None else plain.host,
                v0_port=-1 if plain is None else plain.port,
            )
        return UpdateMetadataRequest.UpdateMetadataBroker(
            id=broker_id,
            endpoints=[
                UpdateMetadataRequest.UpdateMetadataEndpoint(
                    host=endpoint.host,
                    port=endpoint.port,
                    security_protocol=SECURITY_PROTOCOL_IDS[endpoint.security_protocol],
                    listener=endpoint.listener_name,
                )
                for endpoint in broker.endpoints
            ],
            rack=broker.rack,
        )

    def _send_stop_replica(self) -> Procedure[None]:
        version = mv.stop_replica_version(self._settings.metadata_version)
        for broker_id, stops in self._stops.items():
            if broker_id not in self._context.live_brokers:
                continue
            if self._context.is_traced:
                yield from self._trace_stops(broker_id, stops)
            yield from self._log(f"Sending StopReplica request for {len(stops)} replicas to broker {broker_id}")
            for request in self._stop_replica_requests(broker_id, stops, version):
                yield Send(broker_id, request, version)
        self._stops.clear()

    def _stop_replica_requests(
        self, broker_id: int, stops: dict[TopicPartition, Stop], version: int
    ) -> list[StopReplicaRequest]:
        """One request; before version 3, which has one delete flag a request, perhaps two."""
        if version >= 3:
            request = self._stop_replica_request(broker_id)
            request.topic_states = [
                StopReplicaRequest.StopReplicaTopicState(
                    topic_name=topic,
                    partition_states=[
                        StopReplicaRequest.StopReplicaPartitionState(
                            partition_index=partition.partition,
                            leader_epoch=stops[partition].leader_epoch,
                            delete_partition=stops[partition].delete,
                        )
                        for partition in partitions
                    ],
                )
                for topic, partitions in _by_topic({p: p for p in stops}).items()
            ]
            return [request]
        requests = []
        for delete in (True, False):
            chosen = {partition: partition for partition, stop in stops.items() if stop.delete is delete}
            if not chosen:
                continue
            request = self._stop_replica_request(broker_id)
            request.delete_partitions = delete
            if version == 0:
                request.ungrouped_partitions = [
                    StopReplicaRequest.StopReplicaPartitionV0(
                        topic_name=partition.topic, partition_index=partition.partition
                    )
                    for partition in chosen
                ]
            else:
                request.topics = [
                    StopReplicaRequest.StopReplicaTopicV1(
                        name=topic, partition_indexes=[partition.partition for partition in partitions]
                    )
                    for topic, partitions in _by_topic(chosen).items()
                ]
            requests.append(request)
        return requests

    def _stop_replica_request(self, broker_id: int) -> StopReplicaRequest:
        return StopReplicaRequest(
            controller_id=self._settings.broker_id,
            controller_epoch=self._context.epoch,
            broker_epoch=self._context.live_broker_epochs[broker_id],
        )


def endpoint_of(broker: BrokerRegistration, listener_name: str) -> Endpoint | None:
    """The broker's endpoint on a listener; None where it does not have that listener."""
    return next((e for e in broker.endpoints if e.listener_name == listener_name), None)


def _by_topic(states: dict[TopicPartition, V]) -> dict[str, list[V]]:
    topics: dict[str, list[V]] = {}
    for partition, state in states.items():
        topics.setdefault(partition.topic, []).append(state)
    return topics


def _set(numbers: Iterable[int]) -> str:
    """As Scala prints a set, in Kafka's log lines."""
    return f"Set({', '.join(map(str, sorted(numbers)))})"
