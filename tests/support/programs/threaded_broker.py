"""A broker on a thread of this process and a port of its own, for clients that block."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.cluster import loggers
from kpybroker.config.broker import BrokerConfig
from kpybroker.config.development import QUICK_GROUPS
from tests.support.brokers.running_broker import settings

START_S = 120

Begun = tuple[int, trio.lowlevel.TrioToken, trio.CancelScope]


def threaded_broker(directory: Path, **keys: str) -> AbstractContextManager[str]:
    """Its address. Heartbeats of consumer groups are short enough for a test."""
    return prepared_broker(directory, lambda broker: None, **keys)


@contextmanager
def prepared_broker(directory: Path, prepare: Callable[[Broker], None], **keys: str) -> Iterator[str]:
    """The same, and `prepare` is called on its thread once it has started."""
    quick = {name.replace(".", "_"): value for name, value in QUICK_GROUPS.items()}
    config = BrokerConfig(settings(directory, **{"listeners": "PLAINTEXT://127.0.0.1:0", **quick, **keys}))
    started: queue.Queue[Begun | BaseException] = queue.Queue()

    async def serve() -> None:
        with trio.CancelScope() as scope:
            async with Broker.open(config) as broker:
                prepare(broker)
                started.put((broker.bound[0].listener.address[1], trio.lowlevel.current_trio_token(), scope))
                await trio.sleep_forever()

    def run() -> None:
        try:
            trio.run(serve)
        except BaseException as error:
            started.put(error)
            raise

    thread = threading.Thread(target=run, name="broker")
    thread.start()
    begun = started.get(timeout=START_S)
    assert not isinstance(begun, BaseException), begun
    port, token, scope = begun
    try:
        yield f"127.0.0.1:{port}"
    finally:
        token.run_sync_soon(scope.cancel)
        thread.join(START_S)
        loggers.put_back()
        assert not thread.is_alive()
