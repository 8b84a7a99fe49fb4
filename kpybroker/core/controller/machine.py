"""The controller itself: election, failover, resignation, and the table from event to procedure.

Election: create `/controller` (ephemeral) and raise `/controller_epoch` in one multi; the broker that succeeds loads
everything from the tree and takes over. Every later write checks the version of `/controller_epoch`, so that a
controller that was replaced without noticing changes nothing. On any failure while taking over, the broker gives
`/controller` up.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from kpybroker.core import tree as t
from kpybroker.core.controller import alter_partition, cluster, elections, events, reassignment
from kpybroker.core.controller.effects import (
    AddBroker,
    Ask,
    ControllerMoved,
    Enqueue,
    Procedure,
    RemoveBroker,
    Settings,
    checked_deletes,
    children,
    error,
    exists_with_watch,
    get,
    info,
    submit,
    warning,
)
from kpybroker.core.controller.events import Event, Signal
from kpybroker.core.controller.features import procedures as features
from kpybroker.core.controller.model import ReplicaState
from kpybroker.core.controller.parts import Parts, refresh_leadership, send_update_metadata
from kpybroker.core.controller.requests import BrokerRequestBatch
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode, KafkaError

INITIAL_CONTROLLER_EPOCH = 0


class Controller:
    """One broker's controller, active or not. `procedure(event)` is run by the shell, one at a time."""

    __slots__ = ("parts",)

    def __init__(self, settings: Settings, leaderless: Set[TopicPartition] = frozenset()) -> None:
        self.parts = Parts(settings, leaderless)

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, as far as it knows."""
        return self.parts.is_active

    @property
    def active_controller_id(self) -> int:
        """The broker that is the controller; -1 where none is known."""
        return self.parts.active_controller_id

    def procedure(self, event: Event) -> Procedure[Any]:
        """The procedure for `event`; for a request, its result is the response.

        A lost controllership ends the procedure and makes this broker resign. A `KafkaError` is the response to the
        request; the shell logs any other failure, and the next event continues with the state of the tree.
        """
        try:
            key = event if isinstance(event, Signal) else type(event)
            if key in _ONLY_ACTIVE and not self.parts.is_active:
                return None
            return (yield from _PROCEDURES[key](self, event))
        except ControllerMoved as moved:
            yield info(f"{self._ident} Controller moved to another broker when processing {event}: {moved}")
            yield from self.maybe_resign()
            raise KafkaError(ErrorCode.NOT_CONTROLLER) from None

    @property
    def _ident(self) -> str:
        return f"[Controller id={self.parts.settings.broker_id}]"

    # --- election and resignation

    def startup(self) -> Procedure[None]:
        """Watch `/controller`, then try to become the controller."""
        yield from exists_with_watch(znodes.CONTROLLER)
        yield from self.elect()

    def reelect(self) -> Procedure[None]:
        """`/controller` is gone: resign if active, then try to become the controller."""
        yield from self.maybe_resign()
        yield from self.elect()

    def expire(self) -> Procedure[None]:
        """The session has ended: stop being the controller without touching the tree."""
        self.parts.active_controller_id = -1
        yield from self._on_resignation()

    def maybe_resign(self) -> Procedure[None]:
        """Read who the controller is, and stop being it if it is another broker."""
        was_active = self.parts.is_active
        yield from exists_with_watch(znodes.CONTROLLER)
        self.parts.active_controller_id = yield from self._controller_id()
        if was_active and not self.parts.is_active:
            yield from self._on_resignation()

    def resign(self) -> Procedure[None]:
        """Give `/controller` up, so that another broker is elected at once."""
        if not self.parts.is_active:
            return
        version = self.parts.context.epoch_zk_version
        self.parts.active_controller_id = -1
        yield from self._on_resignation()
        yield from checked_deletes([znodes.CONTROLLER], version)

    def elect(self) -> Procedure[None]:
        """Try to become the controller; on a failure after that, give `/controller` up again."""
        settings = self.parts.settings
        self.parts.active_controller_id = yield from self._controller_id()
        if self.parts.active_controller_id != -1:
            return
        try:
            epoch, version = yield from self._register()
            self.parts.context.epoch = epoch
            self.parts.context.epoch_zk_version = version
            self.parts.active_controller_id = settings.broker_id
            yield info(
                f"{self._ident} {settings.broker_id} successfully elected as the controller. Epoch incremented to "
                f"{epoch} and epoch zk version is now {version}"
            )
            yield from self._on_failover()
        except ControllerMoved as moved:
            yield from self.maybe_resign()
            if self.parts.active_controller_id == -1:
                yield warning(
                    f"{self._ident} A controller has been elected but just resigned, this will result in another "
                    f"round of election: {moved}"
                )
        except Exception as failure:
            yield error(
                f"{self._ident} Error while electing or becoming controller on broker {settings.broker_id}. "
                f"Trigger controller movement immediately: {failure!r}"
            )
            yield from self._move_away()

    def _move_away(self) -> Procedure[None]:
        self.parts.active_controller_id = yield from self._controller_id()
        if not self.parts.is_active:
            yield warning(f"{self._ident} Controller has already moved when trying to trigger controller movement")
            return
        try:
            yield from self.resign()
        except ControllerMoved:
            yield warning(f"{self._ident} Controller has already moved when trying to trigger controller movement")

    def _controller_id(self) -> Procedure[int]:
        node = yield from get(znodes.CONTROLLER)
        return -1 if node is None else znodes.decode_controller(node.data)

    def _register(self) -> Procedure[tuple[int, int]]:
        """KafkaZkClient.registerControllerAndIncrementControllerEpoch: (epoch, version of its znode)."""
        broker_id = self.parts.settings.broker_id
        timestamp: int = yield Ask.NOW
        current, version = yield from self._current_epoch()
        multi = t.Multi(
            (
                t.Create(znodes.CONTROLLER, znodes.encode_controller(broker_id, timestamp), ephemeral=True),
                t.SetData(znodes.CONTROLLER_EPOCH, znodes.encode_number(current + 1), version),
            )
        )
        (result,) = yield from submit([multi])
        if isinstance(result, tuple):
            assert isinstance(result[1], t.Stat)
            return current + 1, result[1].version
        if isinstance(result, t.MultiFailed) and isinstance(result.error, t.NodeExists | t.BadVersion):
            return (yield from self._check_registration(current + 1))
        assert isinstance(result, t.TreeError)
        raise result

    def _current_epoch(self) -> Procedure[tuple[int, int]]:
        node = yield from get(znodes.CONTROLLER_EPOCH)
        if node is None:
            first = znodes.encode_number(INITIAL_CONTROLLER_EPOCH)
            (result,) = yield from submit([t.Create(znodes.CONTROLLER_EPOCH, first)])
            if isinstance(result, t.TreeError) and not isinstance(result, t.NodeExists):
                raise result
            node = yield from get(znodes.CONTROLLER_EPOCH)
            assert node is not None, "/controller_epoch is never deleted"
        return znodes.decode_number(node.data), node.stat.version

    def _check_registration(self, epoch: int) -> Procedure[tuple[int, int]]:
        """The election was lost, or won by a first attempt whose response was lost: then both znodes show it."""
        node = yield from get(znodes.CONTROLLER)
        if node is None:
            raise ControllerMoved(
                "The ephemeral node at /controller went away while checking whether the controller election "
                "succeeds. Aborting controller startup procedure"
            )
        if znodes.decode_controller(node.data) == self.parts.settings.broker_id:
            current, version = yield from self._current_epoch()
            if current == epoch:
                return epoch, version
        raise ControllerMoved("Controller moved to another broker. Aborting controller startup procedure")

    # --- taking over

    def _on_failover(self) -> Procedure[None]:
        parts = self.parts
        context = parts.context
        yield from features.set_up(parts)
        yield from self._drop_notifications(znodes.LOG_DIR_EVENT_NOTIFICATION)
        yield from self._drop_notifications(znodes.ISR_CHANGE_NOTIFICATION)
        yield info(f"{self._ident} Initializing controller context")
        partitions = yield from self._load_context()
        queued = set((yield from children(znodes.DELETE_TOPICS, watch=True)))
        yield from parts.deletion.init(queued, self._topics_with_offline_replicas() | self._reassigned_topics())
        # Before any LeaderAndIsr, brokers must know which brokers are live.
        yield from send_update_metadata(parts)
        # Elections first, as after the failure of any broker: Kafka's new controller first takes each dead replica out
        # of each ISR, for seconds, and then writes the same states again with their leaders. Brokers learn of all their
        # replicas in one request, with the leaders that were elected.
        batch = BrokerRequestBatch(context, parts.settings)
        yield from parts.partitions.startup(partitions, batch)
        offline = yield from parts.replicas.startup(partitions, batch)
        yield from parts.replicas.change(offline, ReplicaState.OFFLINE)
        yield info(f"{self._ident} Ready to serve as the new controller with epoch {context.epoch}")
        yield from reassignment.resume_all(parts)
        yield from parts.deletion.try_deletion()
        yield from elections.zk_preferred_election(parts)
        if parts.settings.auto_leader_rebalance_enable:
            delay = elections.AUTO_REBALANCE_FIRST_DELAY_SECONDS
            yield Enqueue(Signal.AUTO_PREFERRED_REPLICA_LEADER_ELECTION, delay)

    def _load_context(self) -> Procedure[list[TopicPartition]]:
        """Read what there is; all partitions, each one object for all that is kept of it."""
        parts = self.parts
        context = parts.context
        brokers = yield from features.compatible((yield from cluster.read_brokers()))
        context.add_live_brokers(brokers)
        context.all_topics = yield from cluster.read_topics()
        yield from cluster.load_assignments(parts, context.all_topics)
        partitions = list(context.all_partitions())
        yield from refresh_leadership(parts, partitions)
        for broker_id, registration in context.live_brokers.items():
            yield AddBroker(broker_id, registration)
        yield info(f"{self._ident} Currently active brokers in the cluster: {sorted(context.live_broker_ids)}")
        return partitions

    def _topics_with_offline_replicas(self) -> set[str]:
        context = self.parts.context
        return {
            replica.topic_partition.topic
            for replica in context.replicas_for_partitions(context.all_partitions())
            if not context.is_replica_online(replica.replica, replica.topic_partition)
        }

    def _reassigned_topics(self) -> set[str]:
        return {partition.topic for partition in self.parts.context.partitions_being_reassigned}

    def _drop_notifications(self, path: str) -> Procedure[None]:
        """Delete notifications: what they announce is about to be read."""
        names = yield from children(path, watch=True)
        paths = [f"{path}/{name}" for name in names]
        yield from checked_deletes(paths, self.parts.context.epoch_zk_version)

    def _on_resignation(self) -> Procedure[None]:
        for broker_id in list(self.parts.context.live_brokers):
            yield RemoveBroker(broker_id)
        if self.parts.context.epoch:
            yield info(f"{self._ident} Resigned")
        self.parts.context.reset()


def _unclean_election_enabled(controller: Controller, event: Any) -> Procedure[None]:
    yield from controller.parts.partitions.trigger_online(event.topic)


_PROCEDURES: dict[Signal | type, Callable[[Controller, Any], Procedure[Any]]] = {
    Signal.STARTUP: lambda c, e: c.startup(),
    Signal.CONTROLLER_CHANGE: lambda c, e: c.maybe_resign(),
    Signal.REELECT: lambda c, e: c.reelect(),
    Signal.EXPIRE: lambda c, e: c.expire(),
    Signal.BROKER_CHANGE: lambda c, e: cluster.broker_change(c.parts),
    events.BrokerModifications: lambda c, e: cluster.broker_modifications(c.parts, e.broker_id),
    Signal.TOPIC_CHANGE: lambda c, e: cluster.topic_change(c.parts),
    events.PartitionModifications: lambda c, e: cluster.partition_modifications(c.parts, e.topic),
    Signal.TOPIC_DELETION: lambda c, e: cluster.topic_deletion(c.parts),
    Signal.ISR_CHANGE_NOTIFICATION: lambda c, e: cluster.isr_change_notification(c.parts),
    Signal.LOG_DIR_EVENT_NOTIFICATION: lambda c, e: cluster.log_dir_event_notification(c.parts),
    Signal.ZK_PREFERRED_REPLICA_ELECTION: lambda c, e: elections.zk_preferred_election(c.parts),
    Signal.AUTO_PREFERRED_REPLICA_LEADER_ELECTION: lambda c, e: elections.auto_preferred_election(c.parts),
    Signal.ZK_PARTITION_REASSIGNMENT: lambda c, e: reassignment.zk_reassignment(c.parts),
    events.PartitionReassignmentIsrChange: lambda c, e: reassignment.isr_changed(c.parts, e.partition),
    events.UncleanLeaderElectionEnable: _unclean_election_enabled,
    events.LeaderAndIsrResponseReceived: lambda c, e: cluster.leader_and_isr_response_received(c.parts, e),
    events.UpdateMetadataResponseReceived: lambda c, e: cluster.update_metadata_response_received(c.parts, e),
    events.TopicDeletionStopReplicaResponseReceived: lambda c, e: cluster.stop_replica_response_received(c.parts, e),
    events.ReplicaLeaderElection: lambda c, e: elections.elect_leaders(c.parts, e),
    events.DesignatedElection: lambda c, e: elections.designated_election(c.parts, e),
    events.ControlledShutdown: lambda c, e: elections.controlled_shutdown(c.parts, e),
    events.AlterPartitionReceived: lambda c, e: alter_partition.alter_partition(c.parts, e),
    events.ApiPartitionReassignment: lambda c, e: reassignment.alter(c.parts, e),
    events.ListPartitionReassignments: lambda c, e: reassignment.list_reassignments(c.parts, e),
    events.UpdateFeatures: lambda c, e: features.update(c.parts, e),
    events.AllocateProducerIds: lambda c, e: alter_partition.allocate_producer_ids(c.parts, e),
}

_ONLY_ACTIVE: frozenset[Signal | type] = frozenset(
    (
        Signal.BROKER_CHANGE,
        events.BrokerModifications,
        Signal.TOPIC_CHANGE,
        events.PartitionModifications,
        Signal.TOPIC_DELETION,
        Signal.ISR_CHANGE_NOTIFICATION,
        Signal.LOG_DIR_EVENT_NOTIFICATION,
        Signal.ZK_PREFERRED_REPLICA_ELECTION,
        Signal.AUTO_PREFERRED_REPLICA_LEADER_ELECTION,
        Signal.ZK_PARTITION_REASSIGNMENT,
        events.PartitionReassignmentIsrChange,
        events.UncleanLeaderElectionEnable,
        events.LeaderAndIsrResponseReceived,
        events.UpdateMetadataResponseReceived,
        events.TopicDeletionStopReplicaResponseReceived,
    )
)

_CHILD_WATCHES: dict[str, Event] = {
    znodes.BROKER_IDS: Signal.BROKER_CHANGE,
    znodes.TOPICS: Signal.TOPIC_CHANGE,
    znodes.DELETE_TOPICS: Signal.TOPIC_DELETION,
    znodes.ISR_CHANGE_NOTIFICATION: Signal.ISR_CHANGE_NOTIFICATION,
    znodes.LOG_DIR_EVENT_NOTIFICATION: Signal.LOG_DIR_EVENT_NOTIFICATION,
}

_CREATION_WATCHES: dict[str, Event] = {
    znodes.PREFERRED_REPLICA_ELECTION: Signal.ZK_PREFERRED_REPLICA_ELECTION,
    znodes.REASSIGN_PARTITIONS: Signal.ZK_PARTITION_REASSIGNMENT,
}


def event_for_watch(watch: t.WatchEvent) -> Event | None:
    """The event for a fired watch; None for a watch that does not concern the controller."""
    path = watch.path
    if watch.type is t.WatchType.NODE_CHILDREN_CHANGED:
        return _CHILD_WATCHES.get(path)
    if path == znodes.CONTROLLER:
        return Signal.REELECT if watch.type is t.WatchType.NODE_DELETED else Signal.CONTROLLER_CHANGE
    if watch.type is t.WatchType.NODE_CREATED:
        return _CREATION_WATCHES.get(path)
    if watch.type is not t.WatchType.NODE_DATA_CHANGED:
        return None
    parent, _, name = path.rpartition("/")
    if parent == znodes.TOPICS:
        return events.PartitionModifications(name)
    if parent == znodes.BROKER_IDS:
        return events.BrokerModifications(int(name))
    if name == "state" and path.startswith(f"{znodes.TOPICS}/"):
        topic, _, index = parent.removeprefix(f"{znodes.TOPICS}/").split("/")
        return events.PartitionReassignmentIsrChange(TopicPartition(topic, int(index)))
    return None
