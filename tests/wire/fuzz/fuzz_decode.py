"""Fuzzes request decoding: any frame at all raises ProtocolError or nothing, within bounds of memory and time.

    python -m tests.wire.fuzz.fuzz_decode --executions 1000000 [--seed 7]    mutate the corpus
    python -m tests.wire.fuzz.fuzz_decode --frame HEX                        run one frame, as a failure prints it
    python -m tests.wire.fuzz.fuzz_decode --write-corpus                     make the corpus again from the specs

The steps for each frame: header, body, and if it decodes, encoding and decoding again, which must change nothing,
and the decoding in steps, which must agree. Frames that end in a way not seen before (API, version, kind of error) join
the pool that is mutated, so that the search goes deeper than the corpus. A seed gives the same run again.

The corpus is one text file an API: `version hex-frame` a line; ``found.txt`` keeps frames that once failed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from kpybroker.wire.api import API_INFO, ApiInfo
from kpybroker.wire.codec import MAX_ELEMENTS, decode, decode_steps, encode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_request_header
from kpybroker.wire.schema import Field, Message, struct_fields
from tests.wire.random_messages import random_message

CORPUS = Path(__file__).with_name("corpus")
SEED_BYTES_MAX = 300
FRAME_BYTES_MAX = 4096
CLIENT_ID = "fuzz"
HEADER_BYTES = 8 + 2 + len(CLIENT_ID)
POOL_MAX = 20_000
LARGE_FRAME_BYTES = 4 * 1024 * 1024
LARGE_FRAME_ELEMENTS = 10_000
BYTES_PER_FRAME_BYTE_MAX = 1000
"""The smallest element takes a byte of the frame and becomes an object: a few hundred bytes."""
BYTES_PER_ELEMENT_MAX = 64 * 1024 * 1024 // MAX_ELEMENTS
"""A frame may make the broker grow by 64 MiB and hold MAX_ELEMENTS."""
SECONDS_MAX = 2.0
_INTERESTING = (0, 1, 2, 4, 16, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
_INTERESTING_INT32 = (-(2**31), -2, -1, 0, 1, 127, 128, 255, 1000, 32767, 32768, 100_000, 100_001, 2**24, 2**31 - 1)


class FuzzFailure(AssertionError):
    """A frame that broke a rule; the message has the argument for --frame."""


@dataclass
class Report:
    executions: int = 0
    decoded: int = 0
    refused: int = 0
    slowest_seconds: float = 0.0
    peak_bytes: int = 0
    signatures: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return (
            f"{self.executions} executions: {self.decoded} decoded, {self.refused} refused, "
            f"{len(self.signatures)} different ends; slowest {self.slowest_seconds * 1000:.1f} ms, "
            f"highest peak {self.peak_bytes / 1e6:.1f} MB"
        )


def run_frame(frame: bytes, in_steps: bool = False) -> str:
    """Decodes one frame with the target; returns how it ended. Raises anything but ProtocolError."""
    try:
        header = parse_request_header(frame)
    except ProtocolError as error:
        return f"header: {_kind(error)}"
    info = _info(header.api_key)
    if info is None or not info.supports(header.api_version):
        return "not served"
    where = f"{info.name} {header.api_version}"
    body = memoryview(frame)[header.body_offset :]
    try:
        message = decode(info.request_class(), body, header.api_version)
    except ProtocolError as error:
        if in_steps:
            assert _decode_in_steps(info, body, header.api_version) is None, "refused, but not in steps"
        return f"{where}: {_kind(error)}"
    _check_again(info, message, header.api_version)
    if in_steps:
        assert _decode_in_steps(info, body, header.api_version) is not None, "decoded, but not in steps"
    return f"{where}: decoded"


_INFO_BY_KEY = {int(key): info for key, info in API_INFO.items()}


def _info(api_key: int) -> ApiInfo | None:
    return _INFO_BY_KEY.get(api_key)


def _kind(error: ProtocolError) -> str:
    return re.sub(r"\d+", "N", str(error))


def _check_again(info: ApiInfo, message: Any, version: int) -> None:
    """A decoded message can be encoded, and those bytes read back the same (NaN prevents comparing values)."""
    try:
        encoded = encode(message, version)
    except ValueError as error:
        if "follows tag" not in str(error):  # Java reads unordered tags, and refuses to write them
            raise
        return
    assert encode(decode(info.request_class(), encoded, version), version) == encoded, "does not round-trip"


def _decode_in_steps(info: ApiInfo, body: memoryview, version: int) -> Any:
    steps = decode_steps(info.request_class(), body, version)
    try:
        while True:
            next(steps)
    except StopIteration as stop:
        return stop.value
    except ProtocolError:
        return None


def read_corpus() -> list[bytes]:
    """Every frame kept in the corpus."""
    lines = [line for path in sorted(CORPUS.glob("*.txt")) for line in path.read_text().splitlines()]
    return [bytes.fromhex(line.split()[1]) for line in lines]


def write_corpus() -> None:
    """Seeds for every request and version: sparse, full, and as the constructor leaves it."""
    CORPUS.mkdir(exist_ok=True)
    for info in API_INFO.values():
        lines = [f"{version} {frame.hex()}" for version, frame in _seeds(info)]
        (CORPUS / f"{info.key.name.lower()}.txt").write_text("\n".join(lines) + "\n")


def _seeds(info: ApiInfo) -> Iterator[tuple[int, bytes]]:
    for version in range(info.valid_versions[0], info.valid_versions[1] + 1):
        random = Random(f"{info.name} {version}")
        header = encode_request_header(RequestHeader(info.key, version, 7, CLIENT_ID))
        yield version, header + encode(info.request_class()(), version)
        for fullness in (0.5, 1.0):
            for _ in range(100):
                body = encode(random_message(info.request_class(), version, random, fullness), version)
                if len(body) <= SEED_BYTES_MAX:
                    yield version, header + body
                    break


class Mutator:
    """One to a few small changes to a frame, biased towards the weak points of length-prefixed formats."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._changes = [
            self._flip_bit,
            self._interesting_byte,
            self._interesting_byte,
            self._interesting_int,
            self._insert,
            self._delete,
            self._repeat,
            self._cut,
        ]

    def mutate(self, frame: bytes, other: bytes) -> bytes:
        """In nine of ten frames the header stays valid, apart from its version: the bodies are to be tested."""
        keep = HEADER_BYTES if self.random.random() < 0.9 else 0
        data = bytearray(frame[keep:])
        if self.random.random() < 0.1:
            self._splice(data, other)
        for _ in range(self.random.choice((1, 1, 1, 2, 3, 6))):
            if data:
                self.random.choice(self._changes)(data)
        header = self._other_version(frame[:keep]) if self.random.random() < 0.1 else frame[:keep]
        return (header + data)[:FRAME_BYTES_MAX]

    def _at(self, data: bytearray) -> int:
        return int(self.random.random() * len(data))

    def _flip_bit(self, data: bytearray) -> None:
        data[self._at(data)] ^= 1 << (self.random.getrandbits(3))

    def _interesting_byte(self, data: bytearray) -> None:
        data[self._at(data)] = self.random.choice(_INTERESTING)

    def _interesting_int(self, data: bytearray) -> None:
        at = self._at(data)
        size = self.random.choice((2, 4))
        value = self.random.choice(_INTERESTING_INT32) & ((1 << 8 * size) - 1)
        data[at : at + size] = value.to_bytes(size, "big")

    def _insert(self, data: bytearray) -> None:
        at = self._at(data)
        data[at:at] = bytes((self.random.choice(_INTERESTING),)) * self.random.choice((1, 1, 2, 5, 40))

    def _delete(self, data: bytearray) -> None:
        at = self._at(data)
        del data[at : at + self.random.choice((1, 1, 2, 4, 16))]

    def _repeat(self, data: bytearray) -> None:
        at = self._at(data)
        piece = data[at : at + self.random.choice((1, 4, 16, 64))]
        data[at:at] = piece * self.random.choice((1, 1, 3, 30))

    def _cut(self, data: bytearray) -> None:
        del data[self._at(data) :]

    def _other_version(self, header: bytes) -> bytes:
        info = _info(int.from_bytes(header[:2], "big")) if len(header) == HEADER_BYTES else None
        if info is None:
            return header
        return header[:3] + bytes((self.random.randint(*info.valid_versions),)) + header[4:]

    def _splice(self, data: bytearray, other: bytes) -> None:
        data[self._at(data) :] = other[int(self.random.random() * len(other)) :] if other else b""


def fuzz(executions: int, seed: int, measure_every: int = 50) -> Report:
    """Mutates the corpus `executions` times. Raises FuzzFailure at the first frame that breaks a rule."""
    random = Random(seed)
    mutator = Mutator(random)
    corpus = read_corpus()
    pool = list(corpus)
    report = Report()
    for frame in corpus:
        report.signatures.add(_execute(frame, report, measured=True))
    for number in range(executions):
        base = random.choice(corpus if random.random() < 0.5 else pool)
        frame = mutator.mutate(base, random.choice(pool))
        signature = _execute(frame, report, measured=number % measure_every == 0)
        if signature not in report.signatures:
            report.signatures.add(signature)
            if len(pool) < POOL_MAX:
                pool.append(frame)
    return report


def _execute(frame: bytes, report: Report, measured: bool) -> str:
    report.executions += 1
    try:
        if measured:
            return _measured(frame, report)
        signature = run_frame(frame)
    except FuzzFailure:
        raise
    except Exception as error:
        raise FuzzFailure(f"{type(error).__name__}: {error}\n--frame {frame.hex()}") from error
    _count(signature, report)
    return signature


def _count(signature: str, report: Report) -> None:
    if signature.endswith(": decoded"):
        report.decoded += 1
    else:
        report.refused += 1


def _measured(frame: bytes, report: Report) -> str:
    """As run_frame, in steps too; compares the memory that decoding takes with the size of the frame."""
    signature = run_frame(frame, in_steps=True)
    _count(signature, report)
    _measure(frame, report, 20_000 + BYTES_PER_FRAME_BYTE_MAX * len(frame))
    return signature


def _measure(frame: bytes, report: Report, peak_bytes_max: int) -> None:
    started = time.perf_counter()
    _decode_only(frame)
    report.slowest_seconds = max(report.slowest_seconds, time.perf_counter() - started)
    tracemalloc.start()
    try:
        _decode_only(frame)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    report.peak_bytes = max(report.peak_bytes, peak)
    if peak > peak_bytes_max:
        raise FuzzFailure(f"{peak} bytes for a frame of {len(frame)}\n--frame {frame[:2000].hex()}")


def _decode_only(frame: bytes) -> Any:
    """The decoded message is returned, so that it is alive when memory is read."""
    try:
        header = parse_request_header(frame)
        info = _info(header.api_key)
        if info is not None and info.supports(header.api_version):
            return decode(info.request_class(), memoryview(frame)[header.body_offset :], header.api_version)
    except ProtocolError:
        return None


def fuzz_large_frames(report: Report, elements: int) -> None:
    """`elements` of the smallest elements, or what the largest frame allows, in each array of each request.

    Oldest and newest versions only: between them elements differ little, and each frame takes a while.
    """
    for info in API_INFO.values():
        for version in sorted(set(info.valid_versions)):
            for frame in large_frames(info, version, elements):
                report.executions += 1
                _measure(frame, report, 20_000 + BYTES_PER_ELEMENT_MAX * elements)


def large_frames(info: ApiInfo, version: int, elements: int) -> Iterator[bytes]:
    """For each array of a request, a frame that holds `elements` in it, or the share of them that fits."""
    request_class = info.request_class()
    header = encode_request_header(RequestHeader(info.key, version, 7, CLIENT_ID))
    for path in _array_paths(request_class, request_class, version):

        def frame_of(count: int, path: tuple[Field, ...] = path) -> bytes:
            return header + encode(_with_many(request_class, version, path, count), version)

        frame = _most(frame_of, (elements, elements // 4, elements // 16))
        if frame is not None:
            yield frame


def _most(frame_of: Callable[[int], bytes], counts: Sequence[int]) -> bytes | None:
    """The frame of the first of the counts, from the largest on, that is not too large.

    Later elements are no smaller than the first, so most of those that are too large need not be made.
    """
    empty, least = frame_of(0), frame_of(counts[-1])
    for count in counts[:-1]:
        if len(empty) + (len(least) - len(empty)) * count // max(1, counts[-1]) <= LARGE_FRAME_BYTES:
            frame = frame_of(count)
            if len(frame) <= LARGE_FRAME_BYTES:
                return frame
    return least if len(least) <= LARGE_FRAME_BYTES else None


def _array_paths(request_class: type[Message], struct: type[Message], version: int) -> Iterator[tuple[Field, ...]]:
    """The arrays of a struct, each with the arrays and structs around it."""
    for one in struct_fields(request_class, struct):
        if not one.present(version):
            continue
        if one.array:
            yield (one,)
        if one.struct is not None:
            for below in _array_paths(request_class, one.struct, version):
                yield (one, *below)


def _with_many(request_class: type[Message], version: int, path: tuple[Field, ...], count: int) -> Message:
    """A message that holds `count` elements in the last array of the path and one in each array above it."""
    random = Random(0)
    message = target = random_message(request_class, version, random, fullness=0.0)
    for step in path[:-1]:
        assert step.struct is not None
        below = step.struct()
        setattr(target, step.name, [below] if step.array else below)
        target = below
    last = path[-1]
    if last.struct is None:
        element = _SMALLEST.get(last.type_name, 1 << 30 if last.type_name in ("int32", "int64") else 0)
    else:
        element = last.struct()
        for inner in struct_fields(request_class, last.struct):
            if inner.type_name in ("int32", "int64") and not inner.array and inner.present(version):
                setattr(element, inner.name, 1 << 30)  # small ints are shared objects and cost nothing
    setattr(target, last.name, [element] * count)
    result: Message = message
    return result


def distinct_frames(info: ApiInfo, version: int, elements: int, known: dict[str, str]) -> Iterator[bytes]:
    """The same with elements of which no two are equal, below names that the broker knows.

    `known` has a name for each kind of entity (`topic`, `group`, ...): an array within a topic is reached only where
    the topic exists. What may only be validated is.
    """
    request_class = info.request_class()
    header = encode_request_header(RequestHeader(info.key, version, 7, CLIENT_ID))
    for path in _array_paths(request_class, request_class, version):

        def frame_of(count: int, path: tuple[Field, ...] = path) -> bytes:
            return header + encode(_with_distinct(request_class, version, path, count, known), version)

        frame = _most(frame_of, (elements, elements // 2, elements // 4, elements // 16))
        if frame is not None:
            yield frame


def _with_distinct(
    request_class: type[Message], version: int, path: tuple[Field, ...], count: int, known: dict[str, str]
) -> Message:
    message = target = random_message(request_class, version, Random(0), fullness=0.0)
    _name(request_class, message, version, known)
    for step in path[:-1]:
        assert step.struct is not None
        below = step.struct()
        _name(request_class, below, version, known)
        setattr(target, step.name, [below] if step.array else below)
        target = below
    last = path[-1]
    setattr(target, last.name, _distinct_elements(request_class, version, last, count))
    result: Message = message
    return result


def _distinct_elements(request_class: type[Message], version: int, array: Field, count: int) -> list[Any]:
    if array.struct is None:
        return _distinct(array, count)
    elements = [array.struct() for _ in range(count)]
    for inner in struct_fields(request_class, array.struct):
        if inner.present(version) and not inner.array and inner.struct is None and not inner.is_tagged(version):
            for element, value in zip(elements, _distinct(inner, count), strict=True):
                setattr(element, inner.name, value)
    return elements


def _name(request_class: type[Message], struct: Message, version: int, known: dict[str, str]) -> None:
    """Give a struct around the elements names that the broker knows, and let it only validate."""
    inner = None if type(struct) is request_class else type(struct)
    for one in struct_fields(request_class, inner):
        if not one.present(version) or one.array:
            continue
        if one.type_name == "string":
            kind = "topic" if one.name in ("topic", "name", "topic_name", "resource_name") else one.name
            if kind in known:
                setattr(struct, one.name, known[kind])
        elif one.name == "validate_only":
            setattr(struct, one.name, True)
        elif one.name == "resource_type":
            setattr(struct, one.name, 2)


def _distinct(field: Field, count: int) -> list[Any]:
    """The values of so many elements' field; numbers of partitions to create are none that would be carried out."""
    numbers = range(count)
    if field.name in ("num_partitions", "replication_factor", "count"):
        return [0] * count
    match field.type_name:
        case "string":
            return [f"{number:x}" for number in numbers]
        case "bytes" | "records":
            return [b"%x" % number for number in numbers]
        case "uuid":
            return [number.to_bytes(16, "big") for number in numbers]
        case "bool":
            return [False] * count
        case "float64":
            return list(map(float, numbers))
    bits = {"int8": 7, "int16": 15, "uint16": 15}.get(field.type_name, 31)
    return [number % (1 << bits) for number in numbers]


_SMALLEST: dict[str, Any] = {"string": "", "bytes": b"", "uuid": bytes(16), "bool": False}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Fuzz request decoding.")
    parser.add_argument("--executions", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--frame", help="run this one frame, in hex")
    parser.add_argument("--write-corpus", action="store_true")
    options = parser.parse_args(arguments)
    if options.write_corpus:
        write_corpus()
        return 0
    if options.frame:
        print(run_frame(bytes.fromhex(options.frame), in_steps=True))
        return 0
    report = fuzz(options.executions, options.seed)
    fuzz_large_frames(report, LARGE_FRAME_ELEMENTS)
    print(report)
    if report.slowest_seconds > SECONDS_MAX:
        print(f"a frame took more than {SECONDS_MAX} s", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
