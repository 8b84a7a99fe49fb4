"""What the controller counts for the metrics: its events by kind, how long each takes and waits.

Kafka's `ControllerStats`, whose names are those of `ControllerState`.
"""

from __future__ import annotations

from typing import Any, Final

from kpybroker.core.controller import events
from kpybroker.core.controller.events import Signal
from kpybroker.metrics.histogram import Histogram
from kpybroker.metrics.mbeans import Family
from kpybroker.metrics.tables import controller as c

KINDS: Final[dict[Any, Family]] = {
    Signal.STARTUP: c.CHANGES,
    Signal.CONTROLLER_CHANGE: c.CHANGES,
    Signal.REELECT: c.CHANGES,
    Signal.BROKER_CHANGE: c.ELECTIONS,
    Signal.TOPIC_CHANGE: c.TOPIC_CHANGES,
    events.PartitionModifications: c.TOPIC_CHANGES,
    Signal.TOPIC_DELETION: c.TOPIC_DELETIONS,
    events.TopicDeletionStopReplicaResponseReceived: c.TOPIC_DELETIONS,
    events.ControlledShutdown: c.SHUTDOWNS,
    Signal.ZK_PARTITION_REASSIGNMENT: c.REASSIGNMENTS,
    events.ApiPartitionReassignment: c.REASSIGNMENTS,
    events.PartitionReassignmentIsrChange: c.REASSIGNMENTS,
    Signal.ISR_CHANGE_NOTIFICATION: c.ISR_CHANGES,
    events.AlterPartitionReceived: c.ISR_CHANGES,
    events.ListPartitionReassignments: c.LISTS_OF_REASSIGNMENTS,
    Signal.AUTO_PREFERRED_REPLICA_LEADER_ELECTION: c.BALANCES,
    Signal.ZK_PREFERRED_REPLICA_ELECTION: c.MANUAL_BALANCES,
    events.ReplicaLeaderElection: c.MANUAL_BALANCES,
    events.UpdateFeatures: c.FEATURE_UPDATES,
    events.LeaderAndIsrResponseReceived: c.RESPONSES,
    Signal.LOG_DIR_EVENT_NOTIFICATION: c.DIRECTORY_CHANGES,
}
"""The MBean that counts an event, by the signal or the type of the event."""


UNCLEAN: Final = {True: c.TOPIC_UNCLEAN_ENABLES, False: c.UNCLEAN_ENABLES}
"""Of UncleanLeaderElectionEnable, by whether it is of one topic."""


class ControllerStats:
    """Times are recorded in microseconds and exported as milliseconds."""

    def __init__(self) -> None:
        self.times = {family: Histogram(0.001) for family in dict.fromkeys((*KINDS.values(), *UNCLEAN.values()))}
        self.queue_time = Histogram(0.001)

    def record(self, event: Any, waited_s: float, took_s: float) -> None:
        """An event has been processed."""
        self.queue_time.record(int(waited_s * 1e6))
        family = KINDS.get(event if isinstance(event, Signal) else type(event))
        if isinstance(event, events.UncleanLeaderElectionEnable):
            family = UNCLEAN[event.topic is not None]
        if family is not None:
            self.times[family].record(int(took_s * 1e6))
