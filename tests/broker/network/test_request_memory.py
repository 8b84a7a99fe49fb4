"""What is kept to receive into has a bound."""

from __future__ import annotations

from kpybroker.broker.network.request_memory import KEPT_BUFFER_BYTES, KEPT_BUFFERS_MAX, ReceiveBuffers


def test_no_more_than_a_few_buffers_are_kept() -> None:
    buffers = ReceiveBuffers()
    borrowed = [buffers.borrow(1000) for _ in range(KEPT_BUFFERS_MAX + 1)]
    assert borrowed.pop() is None
    assert None not in borrowed
    assert buffers.borrow(KEPT_BUFFER_BYTES + 1) is None
    buffers.give_back(borrowed[0] or bytearray())
    assert buffers.borrow(1000) is borrowed[0]
