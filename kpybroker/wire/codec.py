"""Messages to bytes and back: `encode`, `encode_parts`, `decode`.

Each (message class, version) gets its function on first use, by compiling the class's schema (`compile_encode`,
`compile_decode`). Decoding raises ProtocolError and nothing else, whatever the bytes; bytes after the message are left
alone, as in Kafka. Encoding raises UnsupportedFieldError, ValueError or TypeError for a message no version of Kafka could
write: those are mistakes of the caller. Versions outside the message's range are a ValueError either way.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from kpybroker.wire.compile_decode import Decoder, compile_decoder
from kpybroker.wire.compile_encode import Encoder, UnsupportedFieldError, compile_encoder, size_of
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.schema import Message

__all__ = [
    "MAX_ELEMENTS",
    "UnsupportedFieldError",
    "decode",
    "decode_from",
    "encode",
    "encode_parts",
    "size_of",
]

M = TypeVar("M", bound=Message)

MAX_ELEMENTS = 100_000
"""Array elements and unknown tagged fields that one frame may hold, unless the caller allows more."""

_encoders: dict[tuple[type[Message], int], Encoder] = {}
_decoders: dict[tuple[type[Message], int], Decoder] = {}


def encode(message: Message, version: int) -> bytes:
    """The message's bytes. Its `records`, if any, must be bytes-like: see encode_parts for file slices."""
    chunks: list[bytes] = []
    (_encoders.get((type(message), version)) or _encoder(type(message), version))(message, chunks.append)
    return b"".join(chunks)


def encode_parts(message: Message, version: int) -> list[Any]:
    """The message as bytes, with every `records` value that is not bytes-like standing as an element of its own.

    Two bytes elements never follow each other, and none is empty.
    """
    chunks: list[Any] = []
    (_encoders.get((type(message), version)) or _encoder(type(message), version))(message, chunks.append)
    parts: list[Any] = []
    start = 0
    for index, chunk in enumerate(chunks):
        if not isinstance(chunk, (bytes, bytearray, memoryview)):
            _append_joined(parts, chunks[start:index])
            parts.append(chunk)
            start = index + 1
    _append_joined(parts, chunks[start:])
    return parts


def _append_joined(parts: list[Any], chunks: list[Any]) -> None:
    if joined := b"".join(chunks):
        parts.append(joined)


def decode(message_class: type[M], buffer: Buffer, version: int, max_elements: int = MAX_ELEMENTS) -> M:
    """The message at the start of `buffer`. Its `records` are views into `buffer`, everything else is copied."""
    return decode_from(message_class, buffer, 0, version, max_elements)[0]


def decode_from(
    message_class: type[M], buffer: Buffer, position: int, version: int, max_elements: int = MAX_ELEMENTS
) -> tuple[M, int]:
    """The message at `position`, and the position after it."""
    decoder = _decoders.get((message_class, version)) or _decoder(message_class, version)
    try:
        return decoder(buffer, position, len(buffer), max_elements)
    except ProtocolError as error:
        raise ProtocolError(f"{message_class.__name__} v{version}: {error}") from None
    except (IndexError, struct.error):
        raise ProtocolError(f"{message_class.__name__} v{version}: the frame ends too early") from None
    except UnicodeDecodeError:
        raise ProtocolError(f"{message_class.__name__} v{version}: a string is not UTF-8") from None


def _encoder(message_class: type[Message], version: int) -> Encoder:
    return _compiled(_encoders, compile_encoder, message_class, version)


def _decoder(message_class: type[Message], version: int) -> Decoder:
    return _compiled(_decoders, compile_decoder, message_class, version)


F = TypeVar("F")


def _compiled(
    cache: dict[tuple[type[Message], int], F],
    compiler: Callable[[type[Message], int], F],
    message_class: type[Message],
    version: int,
) -> F:
    low, high = message_class.VERSIONS
    if not low <= version <= high:
        raise ValueError(f"{message_class.__name__} has versions {low}-{high}, not {version}")
    function = cache[message_class, version] = compiler(message_class, version)
    return function
