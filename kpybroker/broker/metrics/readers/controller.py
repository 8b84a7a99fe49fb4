"""The controller; zeros on brokers that are not, as in Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.core.controller.model import ReplicaState
from kpybroker.metrics.reading import Reading, single
from kpybroker.metrics.tables import controller as c
from kpybroker.metrics.tables import replication as r

if TYPE_CHECKING:
    from kpybroker.broker.cluster.controller import ClusterController


OF_A_WALK: Final = (c.IMBALANCE, c.PARTITIONS)


class ControllerReader:
    """`kafka.controller:type=KafkaController` and the like, but for what needs a walk over all partitions."""

    families: Final = (*(family for family in c.FAMILIES if family not in OF_A_WALK), r.REASSIGNING)

    def __init__(self, controller: ClusterController) -> None:
        self._controller = controller

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """The cluster as the controller knows it."""
        controller = self._controller
        stats = controller.stats
        active = controller.is_active
        unclean = controller.unclean_elections
        brokers = offline = topics = deleting = reassigning = 0
        replicas_to_delete = topics_ineligible = replicas_ineligible = 0
        if active:
            context = controller.machine.parts.context
            brokers, offline = len(context.live_brokers), context.offline_partition_count
            topics, deleting = len(context.all_topics), len(context.topics_to_be_deleted)
            reassigning = len(context.partitions_being_reassigned)
            topics_ineligible = len(context.topics_ineligible_for_deletion)
            for topic in context.topics_to_be_deleted:
                replicas_to_delete += len(context.replicas_for_topic(topic))
                replicas_ineligible += len(context.replicas_in_state(topic, ReplicaState.DELETION_INELIGIBLE))
        queues = controller.requests_queued
        return [
            single(
                (c.ACTIVE, int(active)),
                (c.ACTIVE_BROKERS, brokers),
                (c.OFFLINE_PARTITIONS, offline),
                (c.TOPICS, topics),
                (c.TOPICS_TO_DELETE, deleting),
                (c.REPLICAS_TO_DELETE, replicas_to_delete),
                (c.TOPICS_INELIGIBLE, topics_ineligible),
                (c.REPLICAS_INELIGIBLE, replicas_ineligible),
            ),
            single((c.UNCLEAN_ELECTIONS, unclean), *stats.times.items()),
            single((c.EVENT_QUEUE, controller.queued), (c.EVENT_QUEUE_TIME, stats.queue_time)),
            single((c.CHANNEL_QUEUE, sum(queues.values()))),
            Reading([(str(broker_id),) for broker_id in queues], [(c.BROKER_QUEUE, list(queues.values()))]),
            single((r.REASSIGNING, reassigning)),
        ]


class LeadershipReader:
    """The partitions of the cluster, and those whose leader is not the preferred one, in a walk over all of them."""

    families: Final = OF_A_WALK

    def __init__(self, controller: ClusterController) -> None:
        self._controller = controller

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """As the controller knows them."""
        partitions = imbalance = 0
        if self._controller.is_active:
            context = self._controller.machine.parts.context
            for partition, leadership in list(context.partition_leadership_info.items()):
                await budget.spend(1)
                partitions += 1
                replicas = context.replicas(partition)
                imbalance += bool(replicas) and leadership.leader_and_isr.leader != replicas[0]
        return [single((c.IMBALANCE, imbalance), (c.PARTITIONS, partitions))]
