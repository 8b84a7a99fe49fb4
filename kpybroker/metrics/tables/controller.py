"""The controller. Values of the cluster are 0 on brokers that are not the controller, as in Kafka."""

from __future__ import annotations

from typing import Final

from kpybroker.metrics.mbeans import Family, Table

CONTROLLER: Final = Table("kafka.controller", "KafkaController")
ACTIVE: Final = CONTROLLER.gauge(
    "ActiveControllerCount",
    "flag",
    "1 on the controller.",
    "The sum over all brokers is not 1 for longer than a moment.",
)
ACTIVE_BROKERS: Final = CONTROLLER.gauge("ActiveBrokerCount", "brokers", "Registered brokers.", "It falls.")
OFFLINE_PARTITIONS: Final = CONTROLLER.gauge(
    "OfflinePartitionsCount", "partitions", "Partitions without a leader.", "Above 0: they can't be read or written."
)
IMBALANCE: Final = CONTROLLER.gauge(
    "PreferredReplicaImbalanceCount",
    "partitions",
    "Partitions whose leader is not the preferred replica.",
    "It stays above 0 and auto.leader.rebalance.enable is false: elect preferred leaders.",
)
TOPICS: Final = CONTROLLER.gauge("GlobalTopicCount", "topics", "Topics of the cluster.")
PARTITIONS: Final = CONTROLLER.gauge("GlobalPartitionCount", "partitions", "Partitions of the cluster.")
TOPICS_TO_DELETE: Final = CONTROLLER.gauge(
    "TopicsToDeleteCount", "topics", "Topics that are being deleted.", "It stays above 0: a replica's broker is down."
)
REPLICAS_TO_DELETE: Final = CONTROLLER.gauge(
    "ReplicasToDeleteCount", "replicas", "Replicas of these topics.", "It stays above 0: a replica's broker is down."
)
TOPICS_INELIGIBLE: Final = CONTROLLER.gauge(
    "TopicsIneligibleToDeleteCount", "topics", "Topics whose deletion waits, for a dead replica or a reassignment."
)
REPLICAS_INELIGIBLE: Final = CONTROLLER.gauge(
    "ReplicasIneligibleToDeleteCount", "replicas", "Replicas that could not be deleted.", "Above 0: a directory failed."
)

STATS: Final = Table("kafka.controller", "ControllerStats")
UNCLEAN_ELECTIONS: Final = STATS.meter(
    "UncleanLeaderElectionsPerSec",
    "elections",
    "Leaders elected outside the ISR.",
    "Any: acknowledged records may be lost.",
)
ELECTIONS: Final = STATS.histogram("LeaderElectionRateAndTimeMs", "ms", "Broker failures that the controller handled.")
CHANGES: Final = STATS.histogram(
    "ControllerChangeRateAndTimeMs", "ms", "Elections of a controller that this broker took part in.", "It grows."
)
TOPIC_CHANGES: Final = STATS.histogram("TopicChangeRateAndTimeMs", "ms", "New topics.")
TOPIC_DELETIONS: Final = STATS.histogram("TopicDeletionRateAndTimeMs", "ms", "Deletions of topics.")
SHUTDOWNS: Final = STATS.histogram("ControlledShutdownRateAndTimeMs", "ms", "Controlled shutdowns of brokers.")
REASSIGNMENTS: Final = STATS.histogram("PartitionReassignmentRateAndTimeMs", "ms", "Reassignments of partitions.")
LISTS_OF_REASSIGNMENTS: Final = STATS.histogram(
    "ListPartitionReassignmentRateAndTimeMs", "ms", "Requests for the reassignments in progress."
)
ISR_CHANGES: Final = STATS.histogram("IsrChangeRateAndTimeMs", "ms", "Changes of ISRs.")
BALANCES: Final = STATS.histogram("AutoLeaderBalanceRateAndTimeMs", "ms", "Checks for preferred leaders.")
MANUAL_BALANCES: Final = STATS.histogram("ManualLeaderBalanceRateAndTimeMs", "ms", "Elections that a client asked for.")
RESPONSES: Final = STATS.histogram(
    "LeaderAndIsrResponseReceivedRateAndTimeMs", "ms", "Responses of brokers about replicas that they could not open."
)
UNCLEAN_ENABLES: Final = STATS.histogram(
    "UncleanLeaderElectionEnableRateAndTimeMs", "ms", "unclean.leader.election.enable became true for all topics."
)
TOPIC_UNCLEAN_ENABLES: Final = STATS.histogram(
    "TopicUncleanLeaderElectionEnableRateAndTimeMs", "ms", "unclean.leader.election.enable became true for a topic."
)
FEATURE_UPDATES: Final = STATS.histogram("UpdateFeaturesRateAndTimeMs", "ms", "Updates of finalized features.")
DIRECTORY_CHANGES: Final = STATS.histogram("LogDirChangeRateAndTimeMs", "ms", "Failures of log directories.")

EVENTS: Final = Table("kafka.controller", "ControllerEventManager")
EVENT_QUEUE: Final = EVENTS.gauge(
    "EventQueueSize", "events", "Events that wait for the controller.", "Hundreds for minutes: the controller lags."
)
EVENT_QUEUE_TIME: Final = EVENTS.histogram("EventQueueTimeMs", "ms", "How long events wait.")

CHANNELS: Final = Table("kafka.controller", "ControllerChannelManager")
CHANNEL_QUEUE: Final = CHANNELS.gauge(
    "TotalQueueSize",
    "requests",
    "Requests of the controller that wait for brokers.",
    "It grows: a broker does not respond.",
)
BROKER_QUEUES: Final = Table("kafka.controller", "ControllerChannelManager", ("broker-id",))
BROKER_QUEUE: Final = BROKER_QUEUES.gauge(
    "QueueSize", "requests", "The same, for one broker.", "It grows: this broker does not respond."
)

FAMILIES: Final[tuple[Family, ...]] = (*CONTROLLER, *STATS, *EVENTS, *CHANNELS, *BROKER_QUEUES)
