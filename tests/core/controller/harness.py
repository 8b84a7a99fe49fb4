"""A harness for the controller: a real tree in memory, simulated brokers, and one command a line of text.

The harness runs procedures one at a time from a queue of events from watches, responses and requests, as the broker's
controller does. Every broker has its own state machine, so that a scenario may have several controllers in sequence, or
two at the same time. After every command that leaves the queues empty, the leadership that the active controller knows
must be that of the tree.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Coroutine
from typing import Any

from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.core import metadata_version as mv
from kpybroker.core import tree as t
from kpybroker.core.controller import cluster, effects, events
from kpybroker.core.controller.events import Signal
from kpybroker.core.controller.machine import Controller, event_for_watch
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire import znodes
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import KafkaError
from tests.core.controller.simulated_broker import SimulatedBroker, alter_partition, is_uneventful, respond
from tests.core.controller.text import (
    event_text,
    failure_text,
    list_text,
    parse_assignments,
    parse_ids,
    parse_partition,
    request_text,
    response_text,
    state_text,
    write_text,
)

NOW_MS = 1_700_000_000_000


class Crashed(Exception):
    """The process died between two writes."""


def instantly(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The in-memory tree never waits."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waited")


class Harness:
    def __init__(self) -> None:
        self.output: list[str] = []
        self._store = EmbeddedStore.in_memory(lambda: NOW_MS)
        self._brokers: dict[int, SimulatedBroker] = {}
        self.admin = self._store.session()
        instantly(self.admin.start(1))
        self.options: dict[str, str] = {}
        self._leaderless: set[TopicPartition] = set()
        self._held = False
        self._uuids = 0
        for path in znodes.PERSISTENT_PATHS:
            parts = path[1:].split("/")
            for depth in range(1, len(parts) + 1):
                instantly(self.admin.submit_many([t.Create("/" + "/".join(parts[:depth]))]))

    def perform(self, line: str) -> None:
        name, *arguments = shlex.split(line)
        command: Callable[..., None] = getattr(self, f"do_{name.replace('-', '_')}")
        command(*arguments)
        if not self._held:
            self._run()
            self._check_memory()

    # --- brokers

    def do_settings(self, *options: str) -> None:
        """Settings of brokers that are added after this."""
        self.options |= dict(option.split("=") for option in options)

    def do_up(self, *ids: str) -> None:
        for broker_id in map(int, ids):
            broker = self._brokers.get(broker_id) or self._new_broker(broker_id)
            instantly(broker.tree.start(1))
            broker.up = True
            data = znodes.encode_broker(self.registration(broker_id))
            instantly(broker.tree.create(znodes.broker_path(broker_id), data, ephemeral=True))

    def registration(self, broker_id: int) -> znodes.BrokerRegistration:
        endpoint = znodes.Endpoint(f"host{broker_id}", 9092, "PLAINTEXT", "PLAINTEXT")
        return znodes.BrokerRegistration((endpoint,), NOW_MS)

    def do_move(self, broker_id: str, host: str) -> None:
        """A broker rewrites its registration with another address."""
        path = znodes.broker_path(int(broker_id))
        data = instantly(self.admin.get(path)).data
        instantly(self.admin.set(path, data.replace(f"host{broker_id}".encode(), host.encode())))

    def do_down(self, *ids: str) -> None:
        for broker_id in map(int, ids):
            broker = self._brokers.pop(broker_id)
            instantly(broker.tree.close())

    def do_bounce(self, broker_id: str) -> None:
        """Down and up before the controller sees it."""
        self.do_down(broker_id)
        self.do_up(broker_id)

    def do_end_session(self, broker_id: str) -> None:
        """The broker has not heard of it."""
        instantly(self._brokers[int(broker_id)].tree.expire())

    def do_expire(self, broker_id: str) -> None:
        """The session ends; the broker opens a new one, registers and tries to be elected, as the shell does."""
        self.do_end_session(broker_id)
        broker = self._brokers[int(broker_id)]
        broker.queue.clear()
        broker.queue.append(Signal.EXPIRE)
        self._run()
        instantly(broker.tree.reopen())
        data = znodes.encode_broker(self.registration(broker.id))
        instantly(broker.tree.create(znodes.broker_path(broker.id), data, ephemeral=True))
        broker.queue.append(Signal.REELECT)

    def do_start(self, *ids: str) -> None:
        """Take part in the election."""
        for broker_id in map(int, ids):
            self._brokers[broker_id].queue.append(Signal.STARTUP)
            if not self._held:
                self._run()

    def do_trace(self, broker_id: str) -> None:
        """The state-change log of this broker has lines at TRACE."""
        self._brokers[int(broker_id)].machine.parts.context.is_traced = True

    def do_silent(self, broker_id: str) -> None:
        """The broker takes requests and never responds."""
        self._brokers[int(broker_id)].silent = True

    def do_cannot_delete(self, broker_id: str) -> None:
        self._brokers[int(broker_id)].cannot_delete = True

    def do_can_delete(self, broker_id: str) -> None:
        self._brokers[int(broker_id)].cannot_delete = False

    def do_log_dir_fails(self, broker_id: str, *partitions: str) -> None:
        self._brokers[int(broker_id)].offline = set(map(parse_partition, partitions))
        data = znodes.encode_log_dir_event(int(broker_id))
        path = f"{znodes.LOG_DIR_EVENT_NOTIFICATION}/{znodes.LOG_DIR_EVENT_PREFIX}"
        instantly(self.admin.create(path, data, sequential=True))

    def do_crash_after(self, broker_id: str, writes: str) -> None:
        self._brokers[int(broker_id)].writes_until_crash = int(writes)

    def do_lose_response(self, broker_id: str, writes: str) -> None:
        """After so many writes the connection breaks: one is applied, its response is lost, and it is repeated."""
        self._brokers[int(broker_id)].writes_until_loss = int(writes)

    def do_hold(self) -> None:
        """Queue events until `run`."""
        self._held = True

    def do_run(self) -> None:
        self._held = False

    # --- topics and tools

    def do_topic(self, name: str, *assignments: str) -> None:
        """`0:1,2` partition 0 on brokers 1 and 2; `noid` leaves out the topic id."""
        topic_id = None if "noid" in assignments else self._uuid()
        partitions = parse_assignments(a for a in assignments if a != "noid")
        data = znodes.encode_topic(znodes.TopicAssignment(topic_id, partitions))
        instantly(self.admin.create(znodes.topic_path(name), data))

    def do_grow(self, name: str, *assignments: str) -> None:
        path = znodes.topic_path(name)
        old = znodes.decode_topic(name, instantly(self.admin.get(path)).data)
        partitions = {**old.partitions, **parse_assignments(assignments)}
        instantly(self.admin.set(path, znodes.encode_topic(znodes.TopicAssignment(old.topic_id, partitions))))

    def do_delete(self, *names: str) -> None:
        for name in names:
            instantly(self.admin.create(znodes.delete_topic_path(name)))

    def do_remove_znode(self, path: str) -> None:
        """As an operator does by hand."""
        for name in instantly(self.admin.children(path)).names:
            self.do_remove_znode(f"{path}/{name}")
        instantly(self.admin.delete(path))

    def do_config(self, topic: str, *pairs: str) -> None:
        data = znodes.encode_config(dict(pair.split("=") for pair in pairs))
        instantly(self.admin.create(znodes.config_path(znodes.CONFIG_TOPICS, topic), data))

    def do_isr(self, partition: str, isr: str, how: str = "") -> None:
        """A leader changes its ISR in the tree itself (before AlterPartition); `tell`: and notifies the controller."""
        key = parse_partition(partition)
        path = znodes.partition_state_path(*key)
        old = znodes.decode_partition_state(instantly(self.admin.get(path)).data)
        state = znodes.PartitionState(old.leader, old.leader_epoch, parse_ids(isr), old.controller_epoch)
        instantly(self.admin.set(path, znodes.encode_partition_state(state)))
        if how == "tell":
            path = f"{znodes.ISR_CHANGE_NOTIFICATION}/{znodes.ISR_CHANGE_PREFIX}"
            instantly(self.admin.create(path, znodes.encode_partitions([key]), sequential=True))

    def do_preferred(self, *partitions: str) -> None:
        data = znodes.encode_partitions([parse_partition(text) for text in partitions])
        instantly(self.admin.create(znodes.PREFERRED_REPLICA_ELECTION, data))

    def do_garbage(self, path: str) -> None:
        instantly(self.admin.create(path, b"{"))

    def do_step(self, broker_id: str) -> None:
        """Handle one event; the others stay queued."""
        broker = self._brokers[int(broker_id)]
        event = broker.queue.popleft()
        self.output.append(f"{broker.id}: {event_text(event)}")
        self._procedure(broker, event)

    def do_steal(self) -> None:
        """Another broker becomes the controller (the znode is deleted and the epoch raised by another)."""
        epoch = int(instantly(self.admin.get(znodes.CONTROLLER_EPOCH)).data)
        instantly(self.admin.set(znodes.CONTROLLER_EPOCH, znodes.encode_number(epoch + 1)))
        instantly(self.admin.set(znodes.CONTROLLER, znodes.encode_controller(99, NOW_MS)))

    # --- requests

    def do_event(self, name: str, *arguments: str) -> None:
        event: events.Event = getattr(events, name)(*arguments) if hasattr(events, name) else Signal(name)
        for broker in self._brokers.values():
            if broker.machine.is_active:
                broker.queue.append(event)

    def do_elect_leaders(self, kind: str, *partitions: str) -> None:
        wanted = tuple(map(parse_partition, partitions))
        self.ask(events.ReplicaLeaderElection(wanted, events.ElectionType[kind.upper()]))

    def do_lead(self, *wishes: str) -> None:
        """`t-0:2` elects 2, `t-0:none` no one from now on."""
        leaders = {
            parse_partition(p): int(leader.replace("none", "-1")) for p, leader in (w.split(":") for w in wishes)
        }
        for partition, leader in leaders.items():
            (self._leaderless.add if leader < 0 else self._leaderless.discard)(partition)
        self.ask(events.DesignatedElection(leaders))

    def do_reassign(self, *wishes: str) -> None:
        """`t-0:2,3` move, `t-0:cancel`."""
        pairs = (wish.split(":") for wish in wishes)
        wanted = {parse_partition(p): None if replicas == "cancel" else parse_ids(replicas) for p, replicas in pairs}
        self.ask(events.ApiPartitionReassignment(wanted))

    def do_zk_reassign(self, *wishes: str) -> None:
        """As `kafka-reassign-partitions --zookeeper` does."""
        pairs = (wish.split(":") for wish in wishes)
        data = znodes.encode_reassignment({parse_partition(p): parse_ids(replicas) for p, replicas in pairs})
        instantly(self.admin.create(znodes.REASSIGN_PARTITIONS, data))

    def do_reassignments(self, *partitions: str) -> None:
        self.ask(events.ListPartitionReassignments([parse_partition(p) for p in partitions] or None))

    def do_assignment(self, *topics: str) -> None:
        """Show the replicas in the topic's znode."""
        for topic in topics:
            found = znodes.decode_topic(topic, instantly(self.admin.get(znodes.topic_path(topic))).data)
            for index, a in sorted(found.partitions.items()):
                moving = f" adding {list_text(a.adding_replicas)} removing {list_text(a.removing_replicas)}"
                is_moving = a.adding_replicas or a.removing_replicas
                self.output.append(f"{topic}-{index}: replicas {list_text(a.replicas)}{moving if is_moving else ''}")

    def do_shutdown(self, broker_id: str, epoch: str = "-1") -> None:
        self.ask(events.ControlledShutdown(int(broker_id), int(epoch)))

    def do_producer_ids(self, broker_id: str, epoch: str = "") -> None:
        context = self._chosen().machine.parts.context
        known = context.live_broker_epochs.get(int(broker_id), -1)
        self.ask(events.AllocateProducerIds(int(broker_id), int(epoch or known)))

    def do_alter(self, broker_id: str, partition: str, *options: str) -> None:
        """`isr= epoch= partition_epoch= recovery= version= broker_epoch=`, each as in the tree by default."""
        given = dict(option.split("=") for option in options)
        context = self._active().machine.parts.context
        version = int(given.get("version", 3))
        request = alter_partition(context, int(broker_id), parse_partition(partition), version, given)
        self.ask(events.AlterPartitionReceived(request, version))

    def do_state(self, *partitions: str) -> None:
        for text in partitions:
            node = instantly(self.admin.get(znodes.partition_state_path(*parse_partition(text))))
            state = znodes.decode_partition_state(node.data)
            self.output.append(f"{text}: {state_text(state)} version {node.stat.version}")

    def do_tree(self, path: str) -> None:
        """The names below `path`."""
        names = sorted(instantly(self.admin.children(path)).names)
        self.output.append(f"{path}: {' '.join(names) or '-'}")

    def do_controllers(self) -> None:
        active = [str(broker.id) for broker in self._brokers.values() if broker.machine.is_active]
        self.output.append(f"active: {' '.join(active) or 'none'}")

    def do_offline_partitions(self) -> None:
        self.output.append(str(self._active().machine.parts.context.offline_partition_count))

    # --- the final state

    def outcome(self) -> dict[str, Any]:
        """The topics in the tree, without epochs, which an interruption may raise."""
        found: dict[str, Any] = {}
        for topic in sorted(instantly(self.admin.children(znodes.TOPICS)).names):
            decoded = znodes.decode_topic(topic, instantly(self.admin.get(znodes.topic_path(topic))).data)
            for index, assignment in sorted(decoded.partitions.items()):
                state = self._state(TopicPartition(topic, index))
                found[f"{topic}-{index}"] = (assignment, state and (state.leader, state.isr))
        for path in (znodes.ADMIN, znodes.DELETE_TOPICS, znodes.ISR_CHANGE_NOTIFICATION):
            found[path] = sorted(instantly(self.admin.children(path)).names)
        return found

    def check_brokers(self) -> None:
        """Every live broker has received the tree's state: as leader or follower, and as metadata."""
        states: dict[TopicPartition, znodes.PartitionState] = {}
        hosts: dict[TopicPartition, tuple[int, ...]] = {}
        for topic in instantly(self.admin.children(znodes.TOPICS)).names:
            decoded = znodes.decode_topic(topic, instantly(self.admin.get(znodes.topic_path(topic))).data)
            for index, assignment in decoded.partitions.items():
                partition = TopicPartition(topic, index)
                state = self._state(partition)
                if state is not None:
                    states[partition], hosts[partition] = state, assignment.replicas
        for broker in self._brokers.values():
            hosted = {p: (s.leader, s.leader_epoch) for p, s in states.items() if broker.id in hosts[p]}
            online = {p: state for p, state in broker.replicas.items() if p not in broker.offline}
            assert online == {p: s for p, s in hosted.items() if p not in broker.offline}, f"broker {broker.id}"
            known = {p: (s.leader, s.leader_epoch, s.isr) for p, s in states.items()}
            assert broker.metadata == known, f"broker {broker.id}"

    def _state(self, partition: TopicPartition) -> znodes.PartitionState | None:
        (found,) = instantly(self.admin.submit_many([t.Get(znodes.partition_state_path(*partition))]))
        return znodes.decode_partition_state(found.data) if isinstance(found, t.NodeData) else None

    @property
    def has_crashed(self) -> bool:
        return any(line.endswith("crashes") for line in self.output)

    @property
    def has_lost_a_response(self) -> bool:
        return any("is lost" in line for line in self.output)

    # --- running

    def settings(self, broker_id: int) -> effects.Settings:
        options = {"version": "3.9-IV0", "delete": "true", "rebalance": "false", **self.options}
        return effects.Settings(
            broker_id=broker_id,
            metadata_version=mv.parse(options["version"]),
            inter_broker_listener_name="PLAINTEXT",
            delete_topic_enable=options["delete"] == "true",
            auto_leader_rebalance_enable=options["rebalance"] == "true",
            leader_imbalance_per_broker_percentage=10,
            leader_imbalance_check_interval_seconds=300,
        )

    def _new_broker(self, broker_id: int) -> SimulatedBroker:
        machine = Controller(self.settings(broker_id), self._leaderless)
        broker = SimulatedBroker(broker_id, self._store.session(), machine)

        def on_event(event: t.TreeEvent) -> None:
            meant = event_for_watch(event) if isinstance(event, t.WatchEvent) else None
            if meant is not None:
                broker.queue.append(meant)

        broker.tree.listen(on_event)
        self._brokers[broker_id] = broker
        return broker

    def _active(self) -> SimulatedBroker:
        return next(broker for broker in self._brokers.values() if broker.machine.is_active)

    def _chosen(self) -> SimulatedBroker:
        """The active controller, or if there is none the first broker."""
        return next((a for a in self._brokers.values() if a.machine.is_active), next(iter(self._brokers.values())))

    def _run(self) -> None:
        while waiting := [broker for broker in self._brokers.values() if broker.queue]:
            broker = waiting[0]
            event = broker.queue.popleft()
            self.output.append(f"{broker.id}: {event_text(event)}")
            self._procedure(broker, event)

    def ask(self, event: events.Event) -> None:
        self._run()
        response = self._procedure(self._chosen(), event)
        self.output.append(f"response {response_text(response)}")

    def _procedure(self, broker: SimulatedBroker, event: events.Event) -> Any:
        procedure = broker.machine.procedure(event)
        result: Any = None
        while True:
            try:
                effect = procedure.send(result)
            except StopIteration as stop:
                return stop.value
            except KafkaError as error:
                return error
            except t.TreeError as error:
                self.output.append(f"{broker.id}: procedure ended with {error!r}")
                return error
            try:
                result = self._do(broker, effect)
            except Crashed:
                procedure.close()
                self.output.append(f"{broker.id} crashes")
                self.do_down(str(broker.id))
                return None

    def _do(self, broker: SimulatedBroker, effect: effects.Effect) -> Any:
        if isinstance(effect, effects.Submit):
            return self._submit(broker, effect)
        if effect is effects.Ask.NOW:
            return NOW_MS
        if effect is effects.Ask.RANDOM_UUID:
            return self._uuid()
        if isinstance(effect, effects.UncleanElectionEnabled):
            return {topic: self._unclean(topic) for topic in effect.topics}
        if isinstance(effect, effects.Send):
            self._send(broker, effect)
        elif isinstance(effect, effects.Log):
            if effect.level >= effects.WARNING:
                self.output.append(f"    ! {effect.message.split('] ', 1)[-1]}")
            elif effect.level == effects.TRACE:
                self.output.append(f"    . {effect.message.split('] ', 1)[-1]}")
        elif isinstance(effect, effects.Enqueue):
            if effect.delay_seconds:
                self.output.append(f"    in {effect.delay_seconds} s: {event_text(effect.event)}")
            else:
                broker.queue.append(effect.event)
        return None

    def _submit(self, broker: SimulatedBroker, effect: effects.Submit) -> list[Any]:
        results = []
        for op in effect.ops:
            is_write = isinstance(op, t.Multi | t.Create | t.SetData | t.Delete)
            if is_write and broker.writes_until_crash is not None:
                if broker.writes_until_crash == 0:
                    raise Crashed
                broker.writes_until_crash -= 1
            if is_write and broker.writes_until_loss is not None:
                if broker.writes_until_loss == 0:
                    self.output.append("    (the response to the next is lost, and it is sent again)")
                    instantly(broker.tree.submit_many([op]))
                broker.writes_until_loss -= 1
            (result,) = instantly(broker.tree.submit_many([op]))
            if is_write:
                self.output.append(f"    {write_text(op)}{failure_text(result)}")
            results.append(result)
        return results

    def _unclean(self, topic: str) -> bool:
        (found,) = instantly(self.admin.submit_many([t.Get(znodes.config_path(znodes.CONFIG_TOPICS, topic))]))
        config = znodes.decode_config(found.data) if isinstance(found, t.NodeData) else {}
        return config.get("unclean.leader.election.enable") == "true"

    def _send(self, broker: SimulatedBroker, effect: effects.Send) -> None:
        # As a peer decodes it: fields that the version does not have must not be set.
        message = decode(type(effect.message), encode(effect.message, effect.version), effect.version)
        self.output.append(f"    -> {effect.broker_id} {request_text(message, effect.version)}")
        receiver = self._brokers.get(effect.broker_id)
        if receiver is None or receiver.silent:
            return
        receiver.obey(message)
        response = respond(receiver, effect.message)
        event = cluster.event_for_response(broker.machine.parts, effect.broker_id, effect.message, response)
        if event is not None and not is_uneventful(event, broker.machine.parts.context):
            broker.queue.append(event)

    def _uuid(self) -> bytes:
        self._uuids += 1
        return self._uuids.to_bytes(16, "big")

    def _check_memory(self) -> None:
        for broker in self._brokers.values():
            if not broker.machine.is_active:
                continue
            for partition, info in broker.machine.parts.context.partition_leadership_info.items():
                if partition.topic in broker.machine.parts.context.topics_to_be_deleted:
                    continue
                (found,) = instantly(self.admin.submit_many([t.Get(znodes.partition_state_path(*partition))]))
                if isinstance(found, t.NodeData) and found.stat.version == info.leader_and_isr.partition_epoch:
                    state = znodes.decode_partition_state(found.data)
                    known = info.leader_and_isr
                    assert (state.leader, state.isr, state.leader_epoch) == (
                        known.leader,
                        known.isr,
                        known.leader_epoch,
                    )
