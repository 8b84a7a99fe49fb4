"""Who leads a partition and which replicas are in sync, as `/brokers/topics/<t>/partitions/<p>/state` holds it."""

from __future__ import annotations

from typing import NamedTuple

from kpybroker.wire.znodes import RECOVERED, RECOVERING

NO_LEADER = -1
INITIAL_LEADER_EPOCH = 0
INITIAL_PARTITION_EPOCH = 0


class LeaderAndIsr(NamedTuple):
    """Who leads a partition, in which epochs, and with which in-sync replicas (ids in Kafka's order)."""

    leader: int
    isr: tuple[int, ...]
    leader_epoch: int = INITIAL_LEADER_EPOCH
    leader_recovery_state: int = RECOVERED
    partition_epoch: int = INITIAL_PARTITION_EPOCH

    def new_leader(self, leader: int) -> LeaderAndIsr:
        """The next leader epoch, led by `leader`, with the same ISR."""
        return self.new_leader_and_isr(leader, self.isr)

    def new_leader_and_isr(self, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
        """The next leader epoch, led by `leader`, with another ISR."""
        return self._replace(leader=leader, isr=isr, leader_epoch=self.leader_epoch + 1)

    def new_recovering_leader_and_isr(self, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
        """As `new_leader_and_isr`, after an unclean election: the leader must recover first (KIP-704)."""
        return self._replace(
            leader=leader, isr=isr, leader_epoch=self.leader_epoch + 1, leader_recovery_state=RECOVERING
        )

    def new_epoch(self) -> LeaderAndIsr:
        """The next leader epoch with the same leader and ISR, which fences what the last one had in flight."""
        return self.new_leader_and_isr(self.leader, self.isr)

    def with_partition_epoch(self, partition_epoch: int) -> LeaderAndIsr:
        """The same state after a write that gave its znode this version."""
        return self._replace(partition_epoch=partition_epoch)

    def equals_allow_stale_partition_epoch(self, other: LeaderAndIsr) -> bool:
        """Whether `other` already is what this one asks for, a retry after a lost response (KIP-497)."""
        return (
            self.leader == other.leader
            and self.leader_epoch == other.leader_epoch
            and set(self.isr) == set(other.isr)
            and self.leader_recovery_state == other.leader_recovery_state
            and self.partition_epoch <= other.partition_epoch
        )

    @property
    def recovery_text(self) -> str:
        """Kafka's name of the recovery state."""
        return "RECOVERING" if self.leader_recovery_state == RECOVERING else "RECOVERED"

    def __str__(self) -> str:
        """As Kafka 3.9's LeaderAndIsr, whose ISR has no broker epochs with ZooKeeper."""
        isr = ", ".join(f"BrokerState(brokerId={broker_id}, brokerEpoch=-1)" for broker_id in self.isr)
        return (
            f"LeaderAndIsr(leader={self.leader}, leaderEpoch={self.leader_epoch}, isrWithBrokerEpoch=List({isr}), "
            f"leaderRecoveryState={self.recovery_text}, partitionEpoch={self.partition_epoch})"
        )
