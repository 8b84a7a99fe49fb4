"""Calls in threads: what they cost when they fail."""

from __future__ import annotations

import gc
import weakref

import pytest
import trio

from kpybroker.broker.loop.yielding import in_thread
from kpybroker.wire.errors import ErrorCode, KafkaError


class Large:
    """Stands for megabytes that a caller holds."""


async def test_an_error_from_a_thread_keeps_nothing_alive_that_its_caller_held() -> None:
    """Not until the next full collection either, which may be an hour away."""
    caught: list[ErrorCode] = []

    async def ask() -> weakref.ref[Large]:
        held, within = Large(), Large()

        def fail(inner: Large = within) -> None:
            try:
                raise ValueError(inner)
            except ValueError as error:
                raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE) from error

        try:
            await in_thread(fail, trio.CapacityLimiter(1))
        except KafkaError as error:
            caught.append(error.code)
        return weakref.ref(held)

    gc.collect()
    gc.disable()
    try:
        held = await ask()
        assert (caught, held()) == ([ErrorCode.MESSAGE_TOO_LARGE], None)
    finally:
        gc.enable()


async def test_what_a_thread_returns_or_raises_otherwise_is_passed_on() -> None:
    limiter = trio.CapacityLimiter(1)
    assert await in_thread(lambda: 7, limiter) == 7
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0, limiter)
