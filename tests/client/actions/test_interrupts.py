"""Ctrl-C ends a wait at once, and work between two records."""

from __future__ import annotations

import io
import os
import signal

import pytest

from kpybroker.client.actions.interrupts import InterruptibleSource, Interrupts


def test_the_first_signal_is_a_request_and_the_second_ends_it() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_wait_is_ended_and_what_has_arrived_is_not_lost() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as stream, os.fdopen(writer, "wb", buffering=0) as out, Interrupts() as interrupts:
        source = InterruptibleSource(stream, interrupts)
        out.write(b"one")
        assert source.read1(100) == b"one"
        out.write(b"two")
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            source.read1(100)
        assert stream.read1(100) == b"two"


def test_a_stream_without_a_descriptor_is_read_at_once() -> None:
    with Interrupts() as interrupts:
        assert InterruptibleSource(io.BytesIO(b"x"), interrupts).read1(10) == b"x"
