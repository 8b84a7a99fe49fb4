"""This broker's lines in Kafka's state-change log: what the controller sent, in the words of Kafka's `ReplicaManager`.

INFO has a line for each request and each change of a role; TRACE each partition of each request. `merge-state-changes`
finds partitions in these lines, so their form is Kafka's to the letter.
"""

from __future__ import annotations

import base64
import logging
from typing import Any

from kpybroker.broker.loop.yielding import YieldBudget, listed
from kpybroker.broker.replication.controller_requests import stop_orders, topic_orders
from kpybroker.broker.requests.log_fields import TRACE
from kpybroker.core.controller.model import LEADER_DURING_DELETE
from kpybroker.core.state_texts import leader_and_isr_text, stop_replica_text, update_metadata_text
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest
from kpybroker.wire.messages.stop_replica import StopReplicaRequest
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest

logger = logging.getLogger("state.change.logger")

NO_ID = -1
"""Of a leader, or an epoch."""


async def received_leader_and_isr(broker_id: int, request: LeaderAndIsrRequest, correlation_id: int) -> int:
    """A request is being handled; returns of how many partitions."""
    budget = YieldBudget()
    orders = await listed(topic_orders(request), budget)
    count = sum(len(order.states) for order in orders)
    _handling(broker_id, "LeaderAndIsr", request.controller_id, correlation_id, count)
    if logger.isEnabledFor(TRACE):
        for order in orders:
            for state in order.states:
                logger.log(
                    TRACE,
                    "[Broker id=%d] Received LeaderAndIsr request %s correlation id %d from controller %d epoch %d",
                    *(broker_id, leader_and_isr_text(order.name, state), correlation_id),
                    *(request.controller_id, request.controller_epoch),
                )
                await budget.spend()
    return count


def finished_leader_and_isr(
    broker_id: int, request: LeaderAndIsrRequest, correlation_id: int, count: int, ms: int
) -> None:
    """All its partitions are in their new roles."""
    logger.info(
        "[Broker id=%d] Finished LeaderAndIsr request in %dms correlationId %d from controller %d for %d partitions",
        *(broker_id, ms, correlation_id, request.controller_id, count),
    )


async def received_stop_replica(broker_id: int, request: StopReplicaRequest, correlation_id: int) -> None:
    """A request is being handled."""
    orders = list(stop_orders(request))
    _handling(broker_id, "StopReplica", request.controller_id, correlation_id, len(orders))
    if logger.isEnabledFor(TRACE):
        budget = YieldBudget()
        for order in orders:
            text = stop_replica_text(order.partition, order.leader_epoch, delete=order.delete)
            logger.log(
                TRACE,
                "[Broker id=%d] Received StopReplica request %s correlation id %d from controller %d epoch %d for "
                "partition %s-%d",
                *(broker_id, text, correlation_id, request.controller_id, request.controller_epoch),
                *(order.topic, order.partition),
            )
            await budget.spend()


async def updated_metadata(
    broker_id: int, request: UpdateMetadataRequest, correlation_id: int, deleted_count: int
) -> None:
    """The metadata cache has changed."""
    states = [(state.topic_name, state) for state in request.ungrouped_partition_states]
    states += [(topic.topic_name, state) for topic in request.topic_states for state in topic.partition_states]
    controller = (request.controller_id, request.controller_epoch, correlation_id)
    if logger.isEnabledFor(TRACE):
        budget = YieldBudget()
        for topic, state in states:
            if state.leader == LEADER_DURING_DELETE:
                logger.log(
                    TRACE,
                    "[Broker id=%d] Deleted partition %s-%d from metadata cache in response to UpdateMetadata request "
                    "sent by controller %d epoch %d with correlation id %d",
                    *(broker_id, topic, state.partition_index),
                    *controller,
                )
                continue
            logger.log(
                TRACE,
                "[Broker id=%d] Cached leader info %s for partition %s-%d in response to UpdateMetadata request sent "
                "by controller %d epoch %d with correlation id %d",
                *(broker_id, update_metadata_text(topic, state), topic, state.partition_index),
                *controller,
            )
            await budget.spend()
    logger.info(
        "[Broker id=%d] Add %d partitions and deleted %d partitions from metadata cache in response to UpdateMetadata "
        "request sent by controller %d epoch %d with correlation id %d",
        *(broker_id, len(states) - deleted_count, deleted_count),
        *controller,
    )


class TracedTransitions:
    """A line before and one after each change of a role, at TRACE; `of` a request of the controller."""

    def __init__(self, broker_id: int, request: LeaderAndIsrRequest, correlation_id: int) -> None:
        self._broker_id = broker_id
        self._of = (
            f"correlationId {correlation_id} from controller {request.controller_id} epoch {request.controller_epoch}"
        )

    def starting(self, topic: str, state: Any) -> None:
        """The partition is about to change."""
        self._log("Handling", "starting", topic, state)

    def completed(self, topic: str, state: Any) -> None:
        """The partition has changed."""
        self._log("Completed", "for", topic, state)

    def _log(self, verb: str, what: str, topic: str, state: Any) -> None:
        leads = state.leader == self._broker_id
        logger.log(
            TRACE,
            "[Broker id=%d] %s LeaderAndIsr request %s %s the %s transition for partition %s-%d%s",
            *(self._broker_id, verb, self._of, what, "become-leader" if leads else "become-follower"),
            *(topic, state.partition_index, "" if leads else f" with leader {state.leader}"),
        )


def traced_transitions(broker_id: int, request: LeaderAndIsrRequest, correlation_id: int) -> TracedTransitions | None:
    """None unless the level is TRACE."""
    return TracedTransitions(broker_id, request, correlation_id) if logger.isEnabledFor(TRACE) else None


def topic_id_text(topic_id: bytes) -> str:
    """A topic id as Scala prints an option of it."""
    return f"Some({base64.urlsafe_b64encode(topic_id).decode().rstrip('=')})" if any(topic_id) else "None"


def leader_text(leader_id: int) -> str:
    """The id of a leader as Scala prints an option of it."""
    return "None" if leader_id == NO_ID else f"Some({leader_id})"


def _handling(broker_id: int, name: str, controller_id: int, correlation_id: int, count: int) -> None:
    logger.info(
        "[Broker id=%d] Handling %s request correlationId %d from controller %d for %d partitions",
        *(broker_id, name, correlation_id, controller_id, count),
    )
