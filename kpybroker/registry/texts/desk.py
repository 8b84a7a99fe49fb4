"""`Desk`: which question goes to which worker, and when.

Rules
- Two workers, each with one question at a time. The second one exists only once the first was busy.
- Every question first gets little time, which nearly all need a fraction of. One that needs more is asked again, with
  all the time that a text may take, of the second worker alone. So what is slow waits for what is slow.
- A worker that ends long before that time was perhaps ended by another process: such a question is asked once more.
- Clients take turns, by their network; of one client, the shortest texts are first. So many texts of one, or long ones,
  wait for one another.
- What waits is bounded, by number and size, also of one client. A question that waits already is asked once.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Final, Protocol

from kpybroker.registry.errors import STORE_ERROR, RegistryError
from kpybroker.registry.texts.channels import Channel, Workers, workers
from kpybroker.registry.texts.frames import Frame
from kpybroker.registry.texts.questions import Question, Reply, read_reply, refused

logger = logging.getLogger("kpybroker.registry")

QUICK_CPU_S: Final = 0.05
CPU_S_MAX: Final = 2.0
"""What a text may take of a processor."""
EARLY: Final = 0.5
"""Of that time: no text that takes too long ends its worker within so much of it."""
WAITING_MAX: Final = 1024
WAITING_OF_CLIENT_MAX: Final = 256
SLOW_WAITING_MAX: Final = 16
"""Of those that need more time: the last one waits half a minute."""
CHARACTERS_MAX: Final = 32 << 20
"""Of all that wait."""
TOO_MANY: Final = 429
WORKERS: Final = 2
WAIT: Final = "Too many schemas wait to be read: try again later"
REASON: Final = f"it needs more than {CPU_S_MAX:g} s of a processor, or more memory than a schema may take"


class Replier(Protocol):
    """What `Desk` offers; tests reply in their own process."""

    def ask(self, question: Question, client: str) -> Future[Reply]:
        """The reply, or RegistryError 429 where too much waits, or 50001 where there are no workers."""


class _Job:
    def __init__(self, question: Question, client: str) -> None:
        self.question = question
        self.client = client
        self.future: Future[Reply] = Future()
        self.future.set_running_or_notify_cancel()  # a client that leaves cancels it for no other one
        self.is_repeated = False
        self.size = sum(len(one.text) + sum(map(len, one.references.values())) for one in question.sources)


class _Lane:
    """Jobs that wait, of one client after the other."""

    def __init__(self) -> None:
        self._by_client: OrderedDict[str, list[tuple[int, int, _Job]]] = OrderedDict()
        self._numbers = itertools.count()
        self.count = 0

    def add(self, job: _Job) -> None:
        self.count += 1
        heapq.heappush(self._by_client.setdefault(job.client, []), (job.size, next(self._numbers), job))

    def take(self) -> _Job:
        client, jobs = self._by_client.popitem(last=False)
        job = heapq.heappop(jobs)[-1]
        self.count -= 1
        if jobs:
            self._by_client[client] = jobs
        return job


class Desk:
    """Of any threads."""

    def __init__(self, made_by: Workers | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._workers = made_by or workers()
        self._clock = clock
        self._changed = threading.Condition()
        self._quick = _Lane()
        self._slow = _Lane()
        self._pending: dict[str, _Job] = {}
        self._of_client: Counter[str] = Counter()
        self._characters = 0
        self._is_first_busy = False
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._work, args=(number,), name=f"kpybroker-registry-texts-{number}", daemon=True)
            for number in range(WORKERS)
        ]

    def start(self) -> None:
        """Before the first question. Does not wait for the workers."""
        self._workers.start()
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the workers. What waits is refused."""
        with self._changed:
            self._is_closed = True
            jobs = list(self._pending.values())
            self._changed.notify_all()
        self._workers.close()
        for job in jobs:
            self._fail(job, RegistryError(STORE_ERROR, "the registry stops"))

    def ask(self, question: Question, client: str) -> Future[Reply]:
        """See `Replier`."""
        job = _Job(question, client)
        with self._changed:
            same = self._pending.get(question.key)
            if same is not None:
                return same.future
            is_full = len(self._pending) >= WAITING_MAX or self._of_client[client] >= WAITING_OF_CLIENT_MAX
            if is_full or self._is_closed or (self._characters and self._characters + job.size > CHARACTERS_MAX):
                job.future.set_exception(RegistryError(TOO_MANY, WAIT))
                return job.future
            self._pending[question.key] = job
            self._of_client[client] += 1
            self._characters += job.size
            self._quick.add(job)
            self._changed.notify_all()
        return job.future

    def _work(self, number: int) -> None:
        channel: Channel | None = None
        while True:
            with self._changed:
                while not self._is_closed and not self._has_work(number):
                    self._changed.wait()
                if self._is_closed:
                    break
                is_slow = number > 0 and self._slow.count > 0
                job = (self._slow if is_slow else self._quick).take()
                self._is_first_busy = self._is_first_busy or number == 0
                self._changed.notify_all()
            begin = self._clock()
            channel, frame = self._asked(number, job, channel, CPU_S_MAX if is_slow else QUICK_CPU_S)
            is_early = self._clock() - begin < CPU_S_MAX * EARLY
            if number == 0:  # before its reply is known, so that the next question finds it free
                with self._changed:
                    self._is_first_busy = False
            is_final = is_slow and (job.is_repeated or not is_early)
            job.is_repeated = is_slow
            channel = self._reply(job, channel, frame, is_final=is_final)
        if channel is not None:
            channel.end()

    def _asked(
        self, number: int, job: _Job, channel: Channel | None, cpu_s: float
    ) -> tuple[Channel | None, Frame | None]:
        """The channel, if there is one, and what it replies."""
        try:
            channel = channel or self._workers.make(number)
            return channel, None if channel is None else channel.ask(job.question.message(), cpu_s)
        except Exception:  # no more processes or descriptors, for one: the next question may find some
            logger.exception("a worker cannot be asked")
            if channel is not None:
                channel.end()
            return None, None

    def _has_work(self, number: int) -> bool:
        if number == 0:
            return self._quick.count > 0
        return self._slow.count > 0 or (self._is_first_busy and self._quick.count > 0)

    def _reply(self, job: _Job, channel: Channel | None, frame: Frame | None, *, is_final: bool) -> Channel | None:
        """The channel, if the worker can be asked again."""
        if channel is None:
            self._fail(job, RegistryError(STORE_ERROR, "schemas cannot be read now: no worker process starts"))
            return None
        reply = None if frame is None else _read(frame.content)
        if frame is not None and reply is not None:
            self._finish(job, reply)
            if frame.number == 0:
                return channel
        elif is_final:
            logger.warning("a schema was refused client=%s characters=%d cause=%s", job.client, job.size, REASON)
            self._finish(job, refused(REASON))
        else:
            with self._changed:
                is_full = self._slow.count >= SLOW_WAITING_MAX
                if not is_full:
                    self._slow.add(job)
                    self._changed.notify_all()
            if is_full:
                self._fail(job, RegistryError(TOO_MANY, WAIT))
        channel.end()
        return None

    def _finish(self, job: _Job, reply: Reply) -> None:
        if reply.code == STORE_ERROR:
            logger.error("a worker failed what=%s\n%s", job.question.what, reply.why)
            self._fail(job, RegistryError(STORE_ERROR, "Internal Server Error"))
            return
        self._remove(job)
        with suppress(InvalidStateError):  # refused while the desk was closed
            job.future.set_result(reply)

    def _fail(self, job: _Job, error: RegistryError) -> None:
        self._remove(job)
        with suppress(InvalidStateError):
            job.future.set_exception(error)

    def _remove(self, job: _Job) -> None:
        with self._changed:
            if self._pending.pop(job.question.key, None) is not None:
                self._characters -= job.size
                self._of_client[job.client] -= 1
                if self._of_client[job.client] == 0:
                    del self._of_client[job.client]


def _read(content: bytes) -> Reply | None:
    """None for what no worker sends that is in order."""
    try:
        return read_reply(content)
    except (ValueError, TypeError, RecursionError):
        return None
