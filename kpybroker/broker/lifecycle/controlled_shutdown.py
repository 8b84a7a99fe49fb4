"""Before it stops, a broker asks the controller to move its leaderships to others: ``KafkaServer.controlledShutdown``.

The broker serves until that is done, so that no client waits for an election. It asks once, retries
`controlled.shutdown.max.retries` times, and stops in any case: the controller elects new leaders for what is left when
the registration is gone.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from kpybroker.core import metadata_version as mv
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, ProtocolError

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.peers.peers import Peers

logger = logging.getLogger("kafka.server.KafkaServer")


async def controlled_shutdown(host: Host, metadata: MetadataCache, peers: Peers) -> None:
    """Return when nothing is left that another broker could lead, or after the last retry."""
    config = host.config
    others = metadata.snapshot.brokers.keys() - {host.node_id}
    if not config.get_bool("controlled.shutdown.enable") or not others:
        return
    logger.info("[KafkaServer id=%d] Starting controlled shutdown", host.node_id)
    tries = max(config.get_int("controlled.shutdown.max.retries"), 0) + 1
    for number in range(tries):
        if number:
            await trio.sleep(config.get_int("controlled.shutdown.retry.backoff.ms") / 1000)
            logger.warning(
                "[KafkaServer id=%d] Retrying controlled shutdown after the previous attempt failed...", host.node_id
            )
        if await _ask(host, peers):
            logger.info("[KafkaServer id=%d] Controlled shutdown request returned successfully", host.node_id)
            return
    logger.warning(
        "[KafkaServer id=%d] Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed",
        host.node_id,
    )


async def _ask(host: Host, peers: Peers) -> bool:
    """Whether the controller has moved everything."""
    from kpybroker.wire.messages.controlled_shutdown import ControlledShutdownRequest

    version = mv.controlled_shutdown_version(mv.parse(host.config.get_str("inter.broker.protocol.version")))
    request = ControlledShutdownRequest(broker_id=host.node_id, broker_epoch=host.broker_epoch)
    try:
        response = await peers.ask_controller_once(ApiKey.CONTROLLED_SHUTDOWN, request, version)
    except (OSError, ProtocolError, trio.TooSlowError) as error:
        logger.warning("[KafkaServer id=%d] Error during controlled shutdown: %r", host.node_id, error)
        return False
    if response.error_code == ErrorCode.NONE and not response.remaining_partitions:
        return True
    if response.error_code != ErrorCode.NONE:
        logger.info("[KafkaServer id=%d] Error from controller: %s", host.node_id, ErrorCode(response.error_code).name)
    else:
        remaining = ",".join(f"{p.topic_name}-{p.partition_index}" for p in response.remaining_partitions)
        logger.info("[KafkaServer id=%d] Remaining partitions to move: %s", host.node_id, remaining)
    return False
