"""`Cluster`: confluent-kafka's admin client, with failures as CommandError, and at once when there is no hope.

librdkafka retries until its deadline and reports in the meantime why it could not connect. A command gives up earlier:
at once for a refused login or certificate, and GRACE_S after every broker went down. (Not at once: of a name with two
addresses librdkafka tries one after the other, and a broker that closes an idle connection is down until the next.)
"""

from __future__ import annotations

import concurrent.futures
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from kpybroker.client.connect.errors import AFTER, FIXES, CommandError, kafka_error
from kpybroker.client.connect.properties import unknown_key
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import WireCluster

POLL_S: Final = 0.1
GRACE_S: Final = 1.5
CONNECTED_S: Final = 0.02
THREAD: Final = "kpybroker-client"
"""The name of threads in which a call blocks that no one waits for any more; such a call ends after its timeout."""
HOPELESS: Final = frozenset({"_AUTHENTICATION", "_SSL"})
SILENT: Final = logging.Logger("librdkafka", logging.CRITICAL + 1)
"""For librdkafka's own lines, which it writes to standard error otherwise: what matters comes as an error too. With
`-X debug=...` they are written.
"""
WHY: Final = frozenset({"_TRANSPORT", "_RESOLVE", "_TIMED_OUT"})


class ErrorWatch:
    """What librdkafka reports of its connections through `error_cb`."""

    def __init__(self) -> None:
        self._hopeless: Any = None
        self._down_since: float | None = None
        self._why: Any = None

    def __call__(self, error: Any) -> None:
        """One error; called by librdkafka while a client is polled."""
        name = error.name()
        if name in HOPELESS:
            self._hopeless = error
        elif name == "_ALL_BROKERS_DOWN" and self._down_since is None:
            self._down_since = time.monotonic()
        elif name in WHY:
            self._why = error

    def connected(self) -> None:
        """A broker responded: what came before no longer counts."""
        self._down_since = None

    def check(self, *, has_timed_out: bool = False) -> None:
        """Raises CommandError when there is no hope; after a time-out, also within GRACE_S."""
        if self._hopeless is not None:
            raise kafka_error(self._hopeless)
        if self._down_since is not None and (has_timed_out or time.monotonic() - self._down_since > GRACE_S):
            raise self.unreachable()

    def cause(self, error: Any) -> CommandError:
        """Why a record could not be delivered: the connection's failure, if that is why it timed out."""
        if error.name() == "_MSG_TIMED_OUT":
            try:
                self.check(has_timed_out=True)
            except CommandError as why:
                return why
        return kafka_error(error)

    def unreachable(self) -> CommandError:
        """No broker can be reached: the cause that librdkafka gave last, without its bookkeeping."""
        text = AFTER.sub("", self._why.str()) if self._why is not None else "all brokers are down"
        return CommandError(f"no broker can be reached: {text}", FIXES["_ALL_BROKERS_DOWN"])


def make(factory: Callable[..., Any], settings: Settings, watch: ErrorWatch, **more: Any) -> Any:
    """A client of confluent-kafka. Raises CommandError, exit code 2, for a key or value that librdkafka refuses."""
    try:
        lines = {} if "debug" in settings.properties else {"logger": SILENT}
        return factory({**settings.client(**more), "error_cb": watch, **lines})
    except KafkaException as error:
        raise unknown_key(error.args[0].str(), settings.source) or kafka_error(error) from None
    except (TypeError, ValueError) as error:
        raise CommandError(str(error), "check --command-config and -X", 2) from None


def make_producer(settings: Settings, watch: ErrorWatch, **more: Any) -> Any:
    """A producer with a moment to connect. Raises CommandError.

    An idempotent one that has a record before its connection looks for the record's leader first, and drops that
    connection for the leader's: its request for a producer id then waits for half a second or for a whole one.
    """
    producer = make(Producer, settings, watch, **more)
    time.sleep(CONNECTED_S)
    return producer


class Cluster:
    """The cluster that `settings` name. Nothing is sent before the first call."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.watch = ErrorWatch()
        self.admin: Any = make(AdminClient, settings, self.watch)

    @property
    def timeouts(self) -> dict[str, float]:
        """Keyword arguments of the admin client's calls that change something."""
        return {"request_timeout": self.settings.timeout_s, "operation_timeout": self.settings.timeout_s}

    @property
    def timeout(self) -> dict[str, float]:
        """Keyword arguments of the other calls."""
        return {"request_timeout": self.settings.timeout_s}

    def result(self, future: Any) -> Any:
        """The future's result. Raises CommandError."""
        while True:
            try:
                found = future.result(timeout=POLL_S)
            except concurrent.futures.TimeoutError:
                self.admin.poll(0)
                self.watch.check()
            except KafkaException as error:
                raise self.error(error) from None
            else:
                if not getattr(found, "errors", None):  # a listing of groups has one for each broker
                    self.watch.connected()
                return found

    def error(self, error: Any) -> CommandError:
        """A failed call as CommandError: when it timed out without a connection, the connection's failure."""
        self.admin.poll(0)
        if error.args[0].name() in ("_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN"):
            self.watch.check(has_timed_out=True)
        return kafka_error(error)

    def results(self, futures: Mapping[Any, Any]) -> list[tuple[Any, Any, CommandError | None]]:
        """(key, result, error) of each future of one call; one of result and error is None.

        Raises CommandError if the cluster cannot be reached at all.
        """
        found: list[tuple[Any, Any, CommandError | None]] = []
        for key, future in list(futures.items()):
            while not future.done():
                concurrent.futures.wait([future], timeout=POLL_S)
                self.admin.poll(0)
                if not future.done():
                    self.watch.check()
            try:
                found.append((key, future.result(), None))
                self.watch.connected()
            except KafkaException as error:
                found.append((key, None, self.error(error)))
            except CommandError as error:  # of a client that is ours
                found.append((key, None, error))
        return found

    def metadata(self) -> Any:
        """Brokers and topics, as ``AdminClient.list_topics`` has them."""
        return self.result(self._in_thread(lambda: self.admin.list_topics(timeout=self.settings.timeout_s)))

    def topic(self, name: str) -> Any:
        """One of the topics of `metadata`; None for one that there is not, or that is hidden from us."""
        return self.metadata().topics.get(name)

    def wire(self) -> AbstractContextManager[WireCluster]:
        """Connections for requests that the admin client does not have; they may be shared, and stay open then."""
        return WireCluster(self.settings)

    def group_offsets(
        self, names: Iterable[str], parts: Sequence[Any] | None = None
    ) -> list[tuple[str, Any, CommandError | None]]:
        """As `results`: the committed offsets of each group, of these partitions or of all that it has."""
        futures: dict[str, Any] = {}
        for name in names:
            request = [ConsumerGroupTopicPartitions(name, None if parts is None else list(parts))]
            futures |= self.admin.list_consumer_group_offsets(request, **self.timeout)
        return self.results(futures)

    def _in_thread(self, call: Callable[[], Any]) -> Any:
        """A future of a call that blocks; the thread does not keep the process alive."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def run() -> None:
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, name=THREAD, daemon=True).start()
        return future
