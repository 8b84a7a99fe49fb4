"""Requests whose fields have values that no sensible client sends, from a seed."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from kpybroker.wire.primitives import MAX_STRING
from kpybroker.wire.schema import Field, Message, struct_fields

LONG: Final = "x" * MAX_STRING
_NAMES: Final = (
    *("", "t", "t", "t", "u", "g", LONG, "ä" * (MAX_STRING // 2), "𝄞" * (MAX_STRING // 4), "x" * 249, "x" * 250),
    *(
        "a\nb",
        "\x1b[31m",
        "a\0b",
        "\ud7ff\ue000",
        "\u202e",
        ".",
        "..",
        "a/b",
        "/",
        "t/partitions",
        " ",
        "a b",
        "٣",
        "９",
    ),
    *("0", "1", "-1", "1e400", "nan", "99999999999999999999999999", "-9223372036854775808", "true", "{}", "*", "0:0"),
    *("__consumer_offsets", "__transaction_state", "consumer", "range", "tx", "User:*", "User:a", "host", "127.0.0.1"),
    *(
        "retention.ms",
        "cleanup.policy",
        "compact",
        "compact,delete",
        "segment.bytes",
        "min.insync.replicas",
        "listeners",
    ),
    *("advertised.listeners", "log.cleaner.threads", "max.connections", "message.timestamp.type", "log.retention.ms"),
    *("leader.replication.throttled.replicas", "follower.replication.throttled.rate", "ssl.keystore.location"),
    *(
        "SCRAM-SHA-256",
        "PLAIN",
        "client-id",
        "user",
        "ip",
        "default",
        "<default>",
        "producer_byte_rate",
        "root",
        "INFO",
    ),
)
_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 17, "uint32": 33}
_NUMBERS: Final = (0, 0, 0, 1, 1, 2, 3, 5, 100, -1, -2, -3, -4)


def odd_request(request_class: type[Message], version: int, random: Random, topic_id: bytes) -> Any:
    """A request that can be encoded; times to wait are short."""
    return _Maker(request_class, version, random, topic_id).struct(request_class)


class _Maker:
    def __init__(self, request_class: type[Message], version: int, random: Random, topic_id: bytes) -> None:
        self._request_class = request_class
        self._version = version
        self._random = random
        self._topic_id = topic_id

    def struct(self, struct_class: type[Message]) -> Message:
        made, random = struct_class(), self._random
        for field in struct_fields(self._request_class, struct_class):
            if not field.present(self._version) or random.random() < 0.15:
                continue
            if field.is_nullable(self._version) and random.random() < 0.12:
                setattr(made, field.name, None)
            elif field.array:
                items = [self._single(field) for _ in range(random.choice((0, 1, 1, 2, 3)))]
                setattr(made, field.name, items + items[:1] * (random.random() < 0.3))
            else:
                setattr(made, field.name, self._single(field))
        return made

    def _single(self, field: Field) -> Any:
        return self.struct(field.struct) if field.struct is not None else self._primitive(field)

    def _primitive(self, field: Field) -> Any:
        random, type_name = self._random, field.type_name
        if type_name == "string":
            return random.choice(_NAMES)
        if type_name in _BITS:
            if "timeout" in field.name or "wait" in field.name:
                return random.choice((0, 0, -1, 1))
            least, most = -(1 << _BITS[type_name] - 1), (1 << _BITS[type_name] - 1) - 1
            number = random.choice((*_NUMBERS, least, most))
            return max(number, 0) if type_name.startswith("u") else number
        if type_name == "bool":
            return random.random() < 0.5
        if type_name == "float64":
            return random.choice((0.0, -1.0, 1.5, 1e300, 1e-300, float("nan"), float("inf"), -float("inf")))
        if type_name == "uuid":
            return random.choice((bytes(16), b"\xff" * 16, bytes(15) + b"\1", self._topic_id))
        return random.choice((b"", bytes(6), bytes(10), b"\xff" * 40, random.randbytes(30)))
