"""How long a request keeps the event loop: the time within its steps, without what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from time import perf_counter_ns
from types import coroutine
from typing import Any, TypeVar

from kpybroker.broker.loop.steps import AsyncCall, Steps, Wait

T = TypeVar("T")


class LoopTime:
    """Nanoseconds on the loop, of one request."""

    __slots__ = ("_began_ns", "_spent_ns")

    def __init__(self) -> None:
        self._spent_ns = 0
        self._began_ns = perf_counter_ns()

    def take_ns(self) -> int:
        """What was spent since the last call, the running step included."""
        spent_ns, self._spent_ns = self._spent_ns, 0
        if self._began_ns:
            now_ns = perf_counter_ns()
            spent_ns += now_ns - self._began_ns
            self._began_ns = now_ns
        return spent_ns

    def around(self, steps: Steps[T]) -> Steps[T]:
        """The steps, of which the time is counted, and of what they await."""
        return self._counted(steps, self._counted_call)

    def _counted(self, steps: Steps[T] | Coroutine[Any, Any, T], passed_on: Callable[[Any], Any]) -> Steps[T]:
        """Steps or a coroutine; what they yield is `passed_on`."""
        value: Any = None
        error: BaseException | None = None
        while True:
            self._began_ns = self._began_ns or perf_counter_ns()
            try:
                wanted = steps.send(value) if error is None else steps.throw(error)
            except StopIteration as finished:
                result: T = finished.value
                return result
            finally:
                self._spent_ns += perf_counter_ns() - self._began_ns
                self._began_ns = 0
            try:
                value, error = (yield passed_on(wanted)), None
            except BaseException as raised:
                value, error = None, raised

    def _counted_call(self, wanted: AsyncCall) -> AsyncCall:
        return wanted if isinstance(wanted, Wait) else partial(self._counted_coroutine, wanted)

    @coroutine
    def _counted_coroutine(self, wanted: AsyncCall) -> Steps[Any]:
        return (yield from self._counted(_awaited(wanted), _as_it_is))


async def _awaited(wanted: AsyncCall) -> Any:
    return await wanted()


def _as_it_is(wanted: Any) -> Any:
    return wanted
