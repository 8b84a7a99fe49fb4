"""`Live`: the connection that all pages share, and the bounds of what one page may ask.

Queries run in threads. One that takes longer than PAGE_S_MAX is given up by its page, and at most WORKING_MAX run at
once, those that were given up included. Each has connections of its own, which the next one takes over; after a failure
they are closed, so that the cluster is found at once when it is back.

Where our connections cannot log in, as with Kerberos, all queries share a client of librdkafka.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import anyio
from anyio import to_thread

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import FIXES, CommandError, Failures, hide
from kpybroker.client.connect.settings import Settings
from kpybroker.client.direct.cluster import DirectCluster, can_be_used
from kpybroker.console.web.permissions import REFUSED

CLIENT_ID: Final = "kpybroker-console"
REQUEST_S_MAX: Final = 4.0
"""How long one request may take."""
PAGE_S_MAX: Final = 10.0
ASKING: Final = 0.9
"""The share of a page's time that its requests may take together; so it can say what did not respond."""
WORKING_MAX: Final = 32
IDLE_MAX: Final = 4
"""Connections to the cluster that wait for the next page."""

T = TypeVar("T")


class Asked(NamedTuple):
    """What a page asks, and what to do where it does not respond."""

    what: str
    fix: str


CLUSTER: Final = Asked("the cluster", FIXES["_TRANSPORT"])
CONNECT: Final = Asked("Kafka Connect", "look at the workers' logs, or check the address of --connect")


class Notes(Failures):
    """The items that failed, for the page instead of standard error."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[dict[str, Any]] = []

    def add(self, item: str, error: CommandError) -> dict[str, str]:
        """Keep one for the page, and return it as a row's `error`."""
        self.count += 1
        shown = {"cause": hide(error.cause), "fix": error.fix}
        self.items.append({"item": item, **shown, "is_refused": REFUSED in error.cause})
        return shown

    def exit_code(self) -> int:
        """1 if any item failed; prints nothing."""
        return int(bool(self.count))


class Live:
    """Runs queries against the cluster that `settings` name. Nothing is sent before the first one."""

    def __init__(
        self, settings: Settings, page_s_max: float = PAGE_S_MAX, request_s_max: float = REQUEST_S_MAX
    ) -> None:
        properties = {"client.id": CLIENT_ID, **settings.properties}
        self.settings = settings._replace(properties=properties, timeout_s=min(settings.timeout_s, request_s_max))
        self._page_s_max = page_s_max
        self._lock = threading.Lock()
        self._is_direct = can_be_used(self.settings)
        self._idle: list[DirectCluster] = []
        self._shared: Cluster | None = None
        self._working = threading.BoundedSemaphore(WORKING_MAX)
        self._limiter = anyio.CapacityLimiter(WORKING_MAX)

    async def ask(self, query: Callable[[Cluster, Notes], T], asked: Asked = CLUSTER) -> tuple[T, Notes]:
        """What the query returns, and the items that failed. Raises CommandError."""
        notes = Notes()
        return await self.run(lambda: self._query(query, notes), asked), notes

    async def run(self, work: Callable[[], T], asked: Asked = CLUSTER) -> T:
        """The result of work in a thread, which must end by itself. Raises CommandError if it takes too long."""
        if not self._working.acquire(blocking=False):
            raise CommandError("too many pages wait for the cluster", "load the page again in a few seconds")
        begins = threading.Lock()  # taken once: by the thread, or by a page that gives up before that begins
        try:
            with anyio.fail_after(self._page_s_max):
                return await to_thread.run_sync(
                    lambda: self._worked(work, begins), abandon_on_cancel=True, limiter=self._limiter
                )
        except TimeoutError:
            self._drop(self._shared)
            cause = f"{asked.what} did not respond within {self._page_s_max:g} seconds"
            raise CommandError(cause, asked.fix) from None
        finally:
            if begins.acquire(blocking=False):
                self._working.release()

    def _worked(self, work: Callable[[], T], begins: threading.Lock) -> T:
        if not begins.acquire(blocking=False):
            raise TimeoutError  # no one waits for it
        try:
            return work()
        finally:
            self._working.release()

    def _query(self, query: Callable[[Cluster, Notes], T], notes: Notes) -> T:
        cluster = self._taken()
        if isinstance(cluster, DirectCluster):
            cluster.deadline.begin(self._page_s_max * ASKING)
        try:
            found = query(cluster, notes)
        except BaseException:
            self._drop(cluster)
            raise
        self._give_back(cluster)
        return found

    def _taken(self) -> Cluster:
        with self._lock:
            if not self._is_direct:
                if self._shared is None:
                    self._shared = Cluster(self.settings)
                return self._shared
            while self._idle:
                cluster = self._idle.pop()
                if cluster.is_usable():
                    return cluster
                cluster.close()
        return DirectCluster(self.settings)

    def _give_back(self, cluster: Cluster) -> None:
        if isinstance(cluster, DirectCluster):
            with self._lock:
                if len(self._idle) < IDLE_MAX:
                    self._idle.append(cluster)
                    return
            cluster.close()

    def _drop(self, cluster: Cluster | None) -> None:
        if isinstance(cluster, DirectCluster):
            cluster.close()
            return
        with self._lock:
            if self._shared is cluster:
                self._shared = None
