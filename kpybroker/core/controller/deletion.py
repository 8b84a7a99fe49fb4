"""Deleting topics: Kafka's `TopicDeletionManager`.

A tool or a handler creates `/admin/delete_topics/<t>`. The topic is queued here; brokers forget it by UpdateMetadata,
then delete its replicas by StopReplica. After the last response the topic's znodes are deleted, the queue entry last. A
dead broker or a reassignment makes the topic ineligible; `resume_for_topics` retries after that. A failed replica is
retried too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kpybroker.core import tree as t
from kpybroker.core.controller.context import ControllerContext
from kpybroker.core.controller.effects import PAUSE, Procedure, Settings, checked, checked_deletes, children, info
from kpybroker.core.controller.model import PartitionAndReplica, PartitionState, ReplicaState
from kpybroker.core.controller.partitions import PartitionStateMachine
from kpybroker.core.controller.replicas import ReplicaStateMachine
from kpybroker.core.controller.requests import BrokerRequestBatch
from kpybroker.wire import znodes


class TopicDeletionManager:
    """Drives each queued topic through the deletion states until its znodes are gone."""

    __slots__ = ("_context", "_partitions", "_replicas", "_settings")

    def __init__(
        self,
        context: ControllerContext,
        settings: Settings,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
    ) -> None:
        self._context = context
        self._settings = settings
        self._partitions = partitions
        self._replicas = replicas

    @property
    def enabled(self) -> bool:
        """`delete.topic.enable`; where it is false, topics are never queued."""
        return self._settings.delete_topic_enable

    def init(self, topics: set[str], ineligible: set[str]) -> Procedure[None]:
        """After a failover: take over the deletions found in the tree, or drop them if deletion is disabled."""
        if self.enabled:
            self._context.topics_to_be_deleted |= topics
            self._context.topics_ineligible_for_deletion |= ineligible & topics
            return
        yield info(f"{self._ident} Removing {_names(topics)} since delete topic is disabled")
        yield from self.delete_queue_entries(topics)

    def try_deletion(self) -> Procedure[None]:
        """Continue every queued deletion that can continue."""
        if self.enabled:
            yield from self._resume()

    def enqueue(self, topics: set[str]) -> Procedure[None]:
        """Add topics to the deletion queue and start deleting."""
        if self.enabled:
            self._context.topics_to_be_deleted |= topics
            yield from self._resume()

    def resume_for_topics(self, topics: Iterable[str]) -> Procedure[None]:
        """Retry deletions after a broker has returned or a reassignment has ended."""
        resumable = self._context.topics_to_be_deleted.intersection(topics)
        if self.enabled and resumable:
            self._context.topics_ineligible_for_deletion -= resumable
            yield from self._resume()

    def mark_ineligible(self, topics: Iterable[str], reason: str) -> Procedure[None]:
        """Suspend the deletion of those of the topics that are queued, and log `reason`."""
        halted = self._context.topics_to_be_deleted.intersection(topics)
        if self.enabled and halted:
            self._context.topics_ineligible_for_deletion |= halted
            yield info(f"{self._ident} Halted deletion of topics {_names(halted)} due to {reason}")

    def fail_replicas(self, replicas: Collection[PartitionAndReplica]) -> Procedure[None]:
        """A broker could not delete these replicas, or died: put them in ReplicaDeletionIneligible."""
        failed = self._queued(replicas)
        if self.enabled and failed:
            yield from self._replicas.change(failed, ReplicaState.DELETION_INELIGIBLE)
            topics = {replica.topic_partition.topic for replica in failed}
            yield from self.mark_ineligible(topics, "replica deletion failure")
            yield from self._resume()

    def complete_replicas(self, replicas: Collection[PartitionAndReplica]) -> Procedure[None]:
        """Brokers have deleted these replicas: finish the topics that have none left."""
        yield from self._replicas.change(self._queued(replicas), ReplicaState.DELETION_SUCCESSFUL)
        yield from self._resume()

    def delete_queue_entries(self, topics: Iterable[str]) -> Procedure[None]:
        """Delete the topics' znodes in `/admin/delete_topics`."""
        paths = [znodes.delete_topic_path(topic) for topic in sorted(topics)]
        yield from checked_deletes(paths, self._context.epoch_zk_version)

    # --- inside

    @property
    def _ident(self) -> str:
        return f"[Topic Deletion Manager {self._settings.broker_id}]"

    def _queued(self, replicas: Iterable[PartitionAndReplica]) -> list[PartitionAndReplica]:
        return [r for r in replicas if self._context.is_topic_queued_for_deletion(r.topic_partition.topic)]

    def _resume(self) -> Procedure[None]:
        context = self._context
        retry: list[str] = []
        eligible: list[str] = []
        queued = sorted(context.topics_to_be_deleted)
        if queued:
            yield info(f"{self._ident} Handling deletion for topics {','.join(queued)}")
        for topic in queued:
            yield PAUSE
            if context.are_all_replicas_in_state(topic, ReplicaState.DELETION_SUCCESSFUL):
                yield from self._complete_topic(topic)
                yield info(f"{self._ident} Deletion of topic {topic} successfully completed")
                continue
            yield PAUSE
            if context.is_any_replica_in_state(topic, ReplicaState.DELETION_STARTED):
                continue
            yield PAUSE
            if context.is_any_replica_in_state(topic, ReplicaState.DELETION_INELIGIBLE):
                retry.append(topic)
            if topic not in context.topics_ineligible_for_deletion:
                yield info(f"{self._ident} Deletion of topic {topic} (re)started")
                eligible.append(topic)
        failed = [r for topic in retry for r in context.replicas_in_state(topic, ReplicaState.DELETION_INELIGIBLE)]
        yield from self._replicas.change(failed, ReplicaState.OFFLINE)
        if eligible:
            yield from self._delete_topics(eligible)

    def _delete_topics(self, topics: list[str]) -> Procedure[None]:
        context = self._context
        unseen = [topic for topic in topics if topic not in context.topics_with_deletion_started]
        partitions = [p for topic in unseen for p in context.partitions_for_topic(topic)]
        yield from self._partitions.change(partitions, PartitionState.OFFLINE)
        yield from self._partitions.change(partitions, PartitionState.NON_EXISTENT)
        # Only now: until a topic is in this set, its partitions count as offline.
        context.topics_with_deletion_started.update(unseen)
        batch = BrokerRequestBatch(context, self._settings)
        yield PAUSE
        partitions = [p for topic in topics for p in context.partitions_for_topic(topic)]
        yield from batch.add_update_metadata_paced(context.live_brokers, partitions)
        yield from batch.send()
        yield from self._delete_replicas(topics)

    def _delete_replicas(self, topics: list[str]) -> Procedure[None]:
        context = self._context
        dead: list[PartitionAndReplica] = []
        alive: list[PartitionAndReplica] = []
        ineligible = set()
        for topic in topics:
            for replica in context.replicas_for_topic(topic):
                if not context.is_replica_online(replica.replica, replica.topic_partition):
                    dead.append(replica)
                    ineligible.add(topic)
                elif context.replica_states.get(replica) is not ReplicaState.DELETION_SUCCESSFUL:
                    alive.append(replica)
        yield from self._replicas.change(dead, ReplicaState.DELETION_INELIGIBLE)
        # Offline first, so that followers stop fetching before the files are deleted.
        yield from self._replicas.change(alive, ReplicaState.OFFLINE)
        yield from self._replicas.change(alive, ReplicaState.DELETION_STARTED)
        yield from self.mark_ineligible(ineligible, "offline replicas")

    def _complete_topic(self, topic: str) -> Procedure[None]:
        context = self._context
        done = context.replicas_in_state(topic, ReplicaState.DELETION_SUCCESSFUL)
        yield from self._replicas.change(done, ReplicaState.NON_EXISTENT)
        yield from self._delete_znodes(topic)
        context.remove_topic(topic)

    def _delete_znodes(self, topic: str) -> Procedure[None]:
        """Delete `/brokers/topics/<t>` with all below it, then its configuration, last the queue entry.

        In this order the next controller finds an interrupted deletion.
        """
        version = self._context.epoch_zk_version
        yield from checked_delete_recursive(znodes.topic_path(topic), version)
        rest = (znodes.config_path(znodes.CONFIG_TOPICS, topic), znodes.delete_topic_path(topic))
        yield from checked_deletes(rest, version)


def checked_delete_recursive(path: str, epoch_zk_version: int) -> Procedure[None]:
    """KafkaZkClient.deleteRecursive with the epoch check, children first; a node that is missing is fine."""
    levels = [[path]]
    while levels[-1]:
        below = []
        for parent in levels[-1]:
            below += [f"{parent}/{name}" for name in (yield from children(parent))]
        levels.append(below)
    nodes = [node for level in reversed(levels) for node in level]
    results = yield from checked([t.Delete(node) for node in nodes], epoch_zk_version)
    if any(isinstance(result, t.NotEmpty) for result in results):
        # A child was created at the same time.
        yield from checked_delete_recursive(path, epoch_zk_version)
        return
    for result in results:
        if isinstance(result, t.TreeError) and not isinstance(result, t.NoNode):
            raise result


def _names(topics: Iterable[str]) -> str:
    return ",".join(sorted(topics))
