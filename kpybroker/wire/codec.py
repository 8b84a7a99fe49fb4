"""Messages to bytes and back: `encode`, `encode_parts`, `encode_steps`, `decode`, `decode_steps`.

Each (message class, version) gets its function on first use, by compiling the class's schema
(`compile_encode`, `compile_decode`). Decoding raises ProtocolError and nothing else, whatever the bytes;
bytes after the message are ignored, as in Kafka. Encoding raises UnsupportedFieldError, struct.error,
ValueError or TypeError for a message that no Kafka could write, and ValueError for a version outside the
message's range: those are errors of the caller.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

from kpybroker.wire.compile_decode import Decoder, StepDecoder, compile_decoder
from kpybroker.wire.compile_encode import Encoder, StepEncoder, UnsupportedFieldError, compile_encoder, size_of
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.schema import Message

__all__ = [
    "ANY_ELEMENTS",
    "LARGE_FRAME_BYTES",
    "MAX_ELEMENTS",
    "UnsupportedFieldError",
    "decode",
    "decode_from",
    "decode_steps",
    "encode",
    "encode_parts",
    "encode_steps",
    "size_of",
]

LARGE_FRAME_BYTES = 16 * 1024
"""Above this a frame may hold so many elements that decoding it at once would hold a loop: `decode_steps`."""

M = TypeVar("M", bound=Message)

MAX_ELEMENTS = 100_000
"""Array elements and unknown tagged fields that one frame may hold, unless the caller allows more."""

ANY_ELEMENTS = 2**31 - 1
"""For frames that this process has made: their elements are not limited."""

_Key: TypeAlias = "tuple[type[Message], int]"  # message class, version

_encoders: dict[_Key, Encoder] = {}
_step_encoders: dict[_Key, StepEncoder] = {}
_decoders: dict[_Key, Decoder] = {}
_step_decoders: dict[_Key, StepDecoder] = {}


def encode(message: Message, version: int) -> bytes:
    """The message's bytes. Its `records`, if any, must be bytes-like; `encode_parts` takes file slices too."""
    chunks: list[bytes] = []
    key = (type(message), version)
    (_encoders.get(key) or _compiled(_encoders, compile_encoder, key))(message, chunks.append)
    return b"".join(chunks)


def encode_parts(message: Message, version: int) -> list[Any]:
    """The message as bytes, with every `records` value that is not bytes-like as an element of its own.

    Two bytes elements never follow each other, and none is empty.
    """
    chunks: list[Any] = []
    key = (type(message), version)
    (_encoders.get(key) or _compiled(_encoders, compile_encoder, key))(message, chunks.append)
    return _parts(chunks)


def encode_steps(message: Message, version: int) -> Generator[None, None, list[Any]]:
    """`encode_parts` as a generator that yields every SLICE_UNITS elements, for large responses."""
    chunks: list[Any] = []
    parts: list[Any] = []
    key = (type(message), version)
    encoder = _step_encoders.get(key) or _compiled(_step_encoders, compile_encoder, key, in_steps=True)
    for _ in encoder(message, chunks.append):
        parts += _parts(chunks)
        chunks.clear()
        yield
    return _parts(parts + chunks)


def _parts(chunks: list[Any]) -> list[Any]:
    try:
        joined = b"".join(chunks)
    except TypeError:
        return _parts_around_slices(chunks)
    return [joined] if joined else []


def _parts_around_slices(chunks: list[Any]) -> list[Any]:
    parts: list[Any] = []
    start = 0
    for index, chunk in enumerate(chunks):
        if type(chunk) not in _BYTES_LIKE:
            _append_joined(parts, chunks[start:index])
            parts.append(chunk)
            start = index + 1
    _append_joined(parts, chunks[start:])
    return parts


_BYTES_LIKE = frozenset({bytes, bytearray, memoryview})


def _append_joined(parts: list[Any], chunks: list[Any]) -> None:
    if joined := b"".join(chunks):
        parts.append(joined)


def decode(message_class: type[M], buffer: Buffer, version: int, max_elements: int = MAX_ELEMENTS) -> M:
    """The message at the start of `buffer`. Its `records` are views into `buffer`, all else is copied."""
    return decode_from(message_class, buffer, 0, version, max_elements)[0]


def decode_from(
    message_class: type[M], buffer: Buffer, position: int, version: int, max_elements: int = MAX_ELEMENTS
) -> tuple[M, int]:
    """The message at `position`, and the position after it."""
    key = (message_class, version)
    decoder = _decoders.get(key) or _compiled(_decoders, compile_decoder, key)
    try:
        return decoder(buffer, position, len(buffer), max_elements)
    except (ProtocolError, IndexError, struct.error, UnicodeDecodeError) as error:
        raise _protocol_error(message_class, version, error) from None


def decode_steps(
    message_class: type[M], buffer: Buffer, version: int, max_elements: int = MAX_ELEMENTS
) -> Generator[None, None, M]:
    """`decode` as a generator that yields every SLICE_UNITS elements, for large frames."""
    key = (message_class, version)
    decoder = _step_decoders.get(key) or _compiled(_step_decoders, compile_decoder, key, in_steps=True)
    try:
        message, _ = yield from decoder(buffer, 0, len(buffer), max_elements)
    except (ProtocolError, IndexError, struct.error, UnicodeDecodeError) as error:
        raise _protocol_error(message_class, version, error) from None
    result: M = message
    return result


def _protocol_error(message_class: type[Message], version: int, error: Exception) -> ProtocolError:
    if isinstance(error, ProtocolError):
        text = str(error)
    else:
        text = "a string is not UTF-8" if isinstance(error, UnicodeDecodeError) else "the frame ends too early"
    return ProtocolError(f"{message_class.__name__} v{version}: {text}")


F = TypeVar("F")


def _compiled(
    cache: dict[_Key, F], compiler: Callable[[type[Message], int, bool], F], key: _Key, *, in_steps: bool = False
) -> F:
    message_class, version = key
    low, high = message_class.VERSIONS
    if not low <= version <= high:
        raise ValueError(f"{message_class.__name__} has versions {low}-{high}, not {version}")
    function = cache[key] = compiler(message_class, version, in_steps)
    return function
