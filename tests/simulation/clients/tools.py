"""What tools ask for, at random: any request that reads, with values that may name what is there, or nothing; and
requests that change something, of names that no one else uses.

Every response has to be one of that request. What a broker did not expect it logs with a traceback, which fails a seed:
UNKNOWN_SERVER_ERROR alone does not, since Kafka has it for some of these, and so have we.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.schema import Message
from tests.simulation.clients.client import Client, Lost
from tests.simulation.world import World

READING = (
    ApiKey.METADATA,
    ApiKey.LIST_OFFSETS,
    ApiKey.FIND_COORDINATOR,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.API_VERSIONS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.OFFSET_FETCH,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
)
CHANGING = (
    ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_DELETE,
    ApiKey.LEAVE_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.SYNC_GROUP,
    ApiKey.ALTER_CONFIGS,
    ApiKey.DELETE_RECORDS,
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.END_TXN,
)
NAMES = ("t", "g", "c", "s", "transactional1", "o0", "nothing", "", "__consumer_offsets", "1")
STRANGE = ("nothing", "no one", "")
NUMBERS = (-2, -1, 0, 1, 2, 3, 7, 100)
RANGES = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32, "int64": 63}
PAUSE_S = 1.0
DEPTH_MAX = 4


class Tools(Client):
    """One request after the other."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._served: dict[int, tuple[int, int]] = {}

    async def run(self) -> None:
        while not self.is_stopping:
            try:
                await self._one()
            except Lost as reason:
                self.note(f"has no response: {reason}")
            await self.pause(PAUSE_S)
        self.close()

    async def _one(self) -> None:
        broker_id = self.any_broker()
        if not self._served:
            found = await self.ask(broker_id, ApiVersionsRequest(), 0)
            self._served = {each.api_key: (each.min_version, each.max_version) for each in found.api_keys}
        is_reading = self.chance.random() < 0.7
        key = self.chance.choice(READING if is_reading else CHANGING)
        if key not in self._served:
            return
        info = API_INFO[key]
        low, high = max(self._served[key][0], info.valid_versions[0]), min(self._served[key][1], info.valid_versions[1])
        version = self.chance.randint(low, high)
        request = self._made(info.request_class(), version, NAMES if is_reading else STRANGE, 0)
        self.note(f"asks {broker_id} {info.name} {version}")
        response = await self.ask(broker_id, request, version)
        for code in _errors(response):
            ErrorCode(code)  # one of Kafka's

    def _made(self, kind: type[Message], version: int, names: tuple[str, ...], depth: int) -> Message:
        """A message of that kind, with values at random where they are sent in this version."""
        fields: dict[str, Any] = {}
        for name, type_name, versions, nullable, _, _, _, _ in kind.FIELDS:
            if not versions[0] <= version <= versions[1] or self.chance.random() < 0.2:
                continue
            is_nullable = nullable is not None and nullable[0] <= version <= nullable[1]
            if is_nullable and self.chance.random() < 0.3:
                fields[name] = None
            elif type_name.startswith("["):
                count = self.chance.randint(0, 2) if depth < DEPTH_MAX else 0
                fields[name] = [self._value(kind, type_name[1:-1], version, names, depth) for _ in range(count)]
            else:
                fields[name] = self._value(kind, type_name, version, names, depth)
        return kind(**fields)

    def _value(self, kind: type[Message], type_name: str, version: int, names: tuple[str, ...], depth: int) -> Any:
        if type_name == "bool":
            return self.chance.random() < 0.5
        if type_name in RANGES:
            number = self.chance.choice(NUMBERS)
            return abs(number) if type_name.startswith("u") else number
        if type_name == "float64":
            return float(self.chance.choice(NUMBERS))
        if type_name == "uuid":
            return bytes(16) if self.chance.random() < 0.5 else self.chance.randbytes(16)
        if type_name == "string":
            return self.chance.choice(names)
        if type_name in ("bytes", "records"):
            return self.chance.randbytes(self.chance.randint(0, 20))
        return self._made(self._struct(kind, type_name), version, names, depth + 1)

    @staticmethod
    def _struct(kind: type[Message], name: str) -> type[Message]:
        found = getattr(kind, name, None)
        if found is None:
            outer = next(info for info in API_INFO.values() if kind.__qualname__.startswith(f"{info.name}Request"))
            found = getattr(outer.request_class(), name)
        assert isinstance(found, type)
        return found


def _errors(message: Any) -> Iterator[int]:
    """All that a response says is wrong, in all its parts."""
    for name, type_name, *_ in message.FIELDS:
        value = getattr(message, name)
        if name.endswith("error_code") and isinstance(value, int):
            yield value
        for part in value if type_name.startswith("[") and value is not None else (value,):
            if isinstance(part, Message):
                yield from _errors(part)
