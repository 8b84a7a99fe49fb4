"""Requests that methods send to the brokers of this process, as a client would, without a socket.

A method that looks or changes something does it by Kafka's own requests where there is one: so it means what it means
to clients, in a cluster too. The interceptor does not see these requests, and the request log does not list them.
"""

from __future__ import annotations

from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

import trio

from kpybroker.broker.handlers import routes
from kpybroker.broker.loop.steps import run_to_end
from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.control.errors import ControlError
from kpybroker.control.levers.leadership import active_controller, awake
from kpybroker.core.authorizer import AllowAll
from kpybroker.core.leader_and_isr import NO_LEADER
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME, TRANSACTION_STATE_TOPIC_NAME
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.control.hosted import Hosted
    from kpybroker.wire.api import ApiKey

LEADER_WAIT_S = 10.0
LOADED_LOOK_S = 0.005


async def ask(broker: Broker, key: ApiKey, request: Any) -> Any:
    """The broker's response to a request in the newest served version. A KafkaError is a response with its code."""
    handler = routes.load(key)
    connection = PlainConnectionInfo(connection_id="control")
    context = RequestContext(connection, AllowAll(), key, SERVED[key][1], client_id="control")
    try:
        handling = handler.handle(broker, request, context)
        if isinstance(handling, GeneratorType):
            return await run_to_end(handling)
        return await handling if isinstance(handling, CoroutineType) else handling
    except KafkaError as error:
        return handler.error_response(request, context, error)
    finally:
        for callback in context.on_sent or ():
            callback()


_FIXES = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "use it, choose another name, or delete it first",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "create the topic first",
    ErrorCode.INVALID_REPLICATION_FACTOR: "ask for at most as many replicas as there are brokers that are up",
    ErrorCode.NOT_ENOUGH_REPLICAS: "start or resume brokers until min.insync.replicas are in sync",
    ErrorCode.REQUEST_TIMED_OUT: "start or resume the brokers that hold its replicas",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "try again",
    ErrorCode.KAFKA_STORAGE_ERROR: "remove the disk fault, or start the broker again",
}


def check(code: int, what: str, message: str | None = None) -> None:
    """Raises a ControlError for an error code of Kafka. `what` says what was tried, `message` the broker's reason."""
    if code != ErrorCode.NONE:
        error = ErrorCode(code)
        cause = f"{what}: {error.name}: {message or error.message}"
        raise ControlError(cause, _FIXES.get(error, "change what the broker names, and try again"), status=409)


def any_broker(hosted: Hosted) -> Broker:
    """The controller, or else the first that is up and not paused. Raises ControlError if none is."""
    if not hosted.brokers:
        raise ControlError("all brokers are down", "start one", status=409)
    brokers = awake(hosted)
    if not brokers:
        raise ControlError("all brokers that are up are paused", "resume one", status=409)
    return active_controller(brokers) or brokers[0]


def partitions_of(hosted: Hosted, topic: str) -> list[int]:
    """The indexes of a topic's partitions. Raises ControlError for an unknown topic."""
    topics = any_broker(hosted).metadata.snapshot.topics
    if topic not in topics:
        from kpybroker.control.errors import did_you_mean

        raise ControlError(f"there is no topic `{topic}`", did_you_mean(topic, topics), status=404)
    return sorted(topics[topic])


def leading(hosted: Hosted, topic: str, partition: int) -> tuple[Broker, Partition]:
    """The leader of a partition with its replica there. Raises ControlError where there is none."""
    indexes = partitions_of(hosted, topic)
    if partition not in indexes:
        raise ControlError(f"{topic} has no partition {partition}", f"give one of 0 to {indexes[-1]}", status=404)
    found = [(broker, broker.replicas.partition(topic, partition)) for broker in hosted.brokers.values()]
    leaders = [(b, p) for b, p in found if p is not None and p.leader is not None and p.log is not None]
    if leaders:  # one that is paused or cut off may not know of the next one
        return max(leaders, key=lambda leader: leader[1].leader_epoch)
    raise ControlError(f"{topic}-{partition} has no leader", "start its brokers, or elect one", status=409)


def coordinating(hosted: Hosted, topic: str, key: str) -> Broker | None:
    """The coordinator of a group or transactional id, by its internal topic; None while that does not exist."""
    first = any_broker(hosted)
    if topic not in first.metadata.snapshot.topics:
        return None
    assert topic in (GROUP_METADATA_TOPIC_NAME, TRANSACTION_STATE_TOPIC_NAME)
    coordinators = first.groups if topic == GROUP_METADATA_TOPIC_NAME else first.transactions
    return leading(hosted, topic, coordinators.partition_for(key))[0]


async def loaded_coordinator(hosted: Hosted, topic: str, key: str) -> Broker | None:
    """`coordinating`, once it has loaded its partition, which takes a moment after a start or an election."""
    broker = coordinating(hosted, topic, key)
    if broker is not None:
        of_groups = topic == GROUP_METADATA_TOPIC_NAME
        shard_for = broker.groups.shard_for if of_groups else broker.transactions.partitions.shard_for
        with trio.move_on_after(LEADER_WAIT_S):
            while True:
                try:
                    shard_for(key)
                    break
                except KafkaError:
                    await trio.sleep(LOADED_LOOK_S)
    return broker


async def wait_for_leaders(hosted: Hosted, topic: str) -> None:
    """Return when every broker knows the topic and a leader of each of its partitions. Raises ControlError."""
    for broker in awake(hosted):
        known = await broker.metadata.wait_until(
            lambda snapshot: (
                topic in snapshot.topics and all(state.leader != NO_LEADER for state in snapshot.topics[topic].values())
            ),
            LEADER_WAIT_S,
        )
        if not known:
            raise ControlError(
                f"broker {broker.node_id} knows no leader of {topic} after {LEADER_WAIT_S:.0f} s",
                "look at `log` for the cause",
                status=408,
            )
