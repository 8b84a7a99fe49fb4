"""Who leads partition 0 of topic `t`, told to a broker as its controller would."""

from __future__ import annotations

from kpybroker.broker.app import Broker
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest
from tests.support.running_broker import ask

LISR = LeaderAndIsrRequest
TOPIC_ID = b"t" * 16


async def tell(broker: Broker, leader: int, epoch: int, isr: list[int]) -> None:
    """One LeaderAndIsr; `epoch` is the leader's and the partition's, and 0 makes the partition. Replicas: 0 and 1."""
    state = LISR.LeaderAndIsrPartitionState(
        partition_index=0,
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=epoch,
        isr=isr,
        replicas=[0, 1],
        is_new=epoch == 0,
    )
    topic = LISR.LeaderAndIsrTopicState(topic_name="t", topic_id=TOPIC_ID, partition_states=[state])
    request = LISR(controller_epoch=9, broker_epoch=broker.broker_epoch, topic_states=[topic])
    assert (await ask(broker, request, 7)).error_code == ErrorCode.NONE
