"""`Service`: one instance: its state, its log, who leads. Requests read under the lock; writes are one at a time.

Both may raise `Unknown`: then the request is run again when `learn` has been awaited. No lock is held in between.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from kpybroker.registry.errors import NO_LEADER, STORE_ERROR, RegistryError
from kpybroker.registry.rules.change import Change
from kpybroker.registry.rules.library import Library
from kpybroker.registry.store import records
from kpybroker.registry.store.records import Record
from kpybroker.registry.store.state import State
from kpybroker.registry.texts.desk import Replier
from kpybroker.registry.texts.known import Known
from kpybroker.registry.texts.questions import Question, Reply

T = TypeVar("T")
Query = Callable[[State, Library], T]


class Log(Protocol):
    """What `store.log.TopicLog` offers; tests have one in memory."""

    def refresh(self) -> None:
        """Wait until everything that was written was applied. Raises RegistryError."""

    def append(self, written: list[Record]) -> None:
        """Write, and wait until it was applied. Raises RegistryError."""


class Leadership(Protocol):
    """What `election.member.Member` offers."""

    def is_leader(self) -> bool:
        """Whether this instance may write now."""

    def leader_url(self) -> str | None:
        """Where the leader is; None where it is not known."""


class Service:
    """Of any threads. The log's reader calls `apply` with `lock` held."""

    def __init__(self, cluster_id: Callable[[], str], desk: Replier) -> None:
        self.lock = threading.Condition(threading.RLock())
        self.cluster_id = cluster_id
        self._state = State()
        self._desk = desk
        self._known = Known()
        self._library = Library(self._state, self._known)
        self._writing = threading.Lock()
        self._log: Log | None = None
        self._leadership: Leadership | None = None

    def attach(self, log: Log, leadership: Leadership) -> None:
        """Before the first request."""
        self._log, self._leadership = log, leadership

    def apply(self, key: bytes | None, value: bytes | None, timestamp: int | None = None) -> str | None:
        """A record of the log, and when it was written. Why it was skipped, if it was."""
        return self._state.apply(key, value, timestamp)

    @property
    def is_leader(self) -> bool:
        """Whether this instance may write now."""
        return self._leadership is not None and self._leadership.is_leader()

    @property
    def leader_url(self) -> str | None:
        """Where the leader is; None where it is not known."""
        return None if self._leadership is None else self._leadership.leader_url()

    def read(self, query: Query[T]) -> T:
        """The result from memory."""
        with self.lock:
            return query(self._state, self._library)

    async def learn(self, questions: Iterable[Question], client: str) -> RegistryError | None:
        """Have questions of a client replied to. What prevents it, if something does: 429 or 50001."""

        def ask(question: Question) -> asyncio.Future[Reply]:
            def keep(done: Future[Reply]) -> None:
                if done.exception() is None:
                    self._known.keep(question, done.result())

            made = self._desk.ask(question, client)
            made.add_done_callback(keep)
            return asyncio.wrap_future(made)

        for one in await asyncio.gather(*map(ask, questions), return_exceptions=True):
            if isinstance(one, RegistryError):
                return one
            if isinstance(one, BaseException):
                raise one
        return None

    def write(self, planned: Query[Change]) -> Any:
        """The result of a plan whose records are in the log. Raises RegistryError, 50004 where another one leads.

        Unknown is raised before anything is written.
        """
        assert self._log is not None, "attached before the first request"
        self._check_leader()
        with suppress(RegistryError):
            self.read(planned)  # so that questions are asked before others have to wait
        with self._writing:
            self._check_leader()
            self._log.refresh()
            plan = self.read(planned)
            if plan.records:
                self._check_leader()
                self._log.append(self.read(lambda state, _: state.spelled(plan.records)))
            if plan.expected is not None and not self._holds(plan):
                place = (plan.expected.subject, plan.expected.version)
                self._log.append([records.schema_removed(*place)])
                raise RegistryError(STORE_ERROR, "another leader gave this id away at the same time; try again")
            return plan.result

    def _holds(self, plan: Change) -> bool:
        wanted = plan.expected
        assert wanted is not None
        found = self.read(lambda state, _: state.version(wanted.subject, wanted.version))
        return found is not None and found._replace(timestamp=None) == wanted

    def _check_leader(self) -> None:
        if not self.is_leader:
            raise RegistryError(NO_LEADER, "this instance does not lead any more; try again")
