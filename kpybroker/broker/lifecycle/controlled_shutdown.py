"""Before it stops, a broker has the controller move its leaderships away: `KafkaServer.controlledShutdown`.

The broker goes on serving meanwhile, so that nobody waits for an election. It asks `controlled.shutdown.max.retries`
times beyond the first, whoever is the controller then, and stops in any case: what it still leads is led anew once its
registration is gone.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from kpybroker.core import metadata_version as mv
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, ProtocolError

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker

log = logging.getLogger("kafka.server.KafkaServer")


async def controlled_shutdown(broker: Broker) -> None:
    """Return when nothing is left that another broker could lead, or when there is no use in asking on."""
    config = broker.config
    others = broker.metadata.snapshot.brokers.keys() - {broker.node_id}
    if not config.get_bool("controlled.shutdown.enable") or not others:
        return
    log.info("[KafkaServer id=%d] Starting controlled shutdown", broker.node_id)
    tries = max(config.get_int("controlled.shutdown.max.retries"), 0) + 1
    for number in range(tries):
        if number:
            await trio.sleep(config.get_int("controlled.shutdown.retry.backoff.ms") / 1000)
            log.warning(
                "[KafkaServer id=%d] Retrying controlled shutdown after the previous attempt failed...", broker.node_id
            )
        if await _ask(broker):
            log.info("[KafkaServer id=%d] Controlled shutdown request returned successfully", broker.node_id)
            return
    log.warning(
        "[KafkaServer id=%d] Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed",
        broker.node_id,
    )


async def _ask(broker: Broker) -> bool:
    """Whether the controller has moved everything."""
    from kpybroker.broker.peers.broker_channels import answer_locally, ask_once
    from kpybroker.wire.messages.controlled_shutdown import ControlledShutdownRequest

    version = mv.controlled_shutdown_version(mv.parse(broker.config.get_str("inter.broker.protocol.version")))
    request = ControlledShutdownRequest(broker_id=broker.node_id, broker_epoch=broker.broker_epoch)
    controller_id = broker.controller.controller_id
    try:
        if controller_id == broker.node_id:
            with trio.fail_after(broker.config.get_int("controller.socket.timeout.ms") / 1000):
                response = await answer_locally(broker, ApiKey.CONTROLLED_SHUTDOWN, request, version)
        else:
            response = await ask_once(broker, controller_id, ApiKey.CONTROLLED_SHUTDOWN, request, version)
    except (OSError, ProtocolError, trio.TooSlowError) as error:
        log.warning("[KafkaServer id=%d] Error during controlled shutdown: %r", broker.node_id, error)
        return False
    if response.error_code == ErrorCode.NONE and not response.remaining_partitions:
        return True
    if response.error_code != ErrorCode.NONE:
        log.info("[KafkaServer id=%d] Error from controller: %s", broker.node_id, ErrorCode(response.error_code).name)
    else:
        remaining = ",".join(f"{p.topic_name}-{p.partition_index}" for p in response.remaining_partitions)
        log.info("[KafkaServer id=%d] Remaining partitions to move: %s", broker.node_id, remaining)
    return False
