"""One broker of the matrix: set up, asked by every caller, and what it returned and logged, as values to compare."""

from __future__ import annotations

import re
import socket
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from compat_tests.differential.messages import plain_response, request_frame
from compat_tests.security.access.acl_callers import ADMIN_HOST, CALLERS, all_acls, allow_admin, creation
from compat_tests.security.access.acl_differences import is_listed
from compat_tests.security.access.acl_requests import GROUP, TOPIC, TXN, Names, Request
from compat_tests.support.services import Broker, ZooKeeper
from compat_tests.support.waiting import eventually
from kpybroker.core.security.acls import Binding
from kpybroker.wire.api import ApiKey

_DEADLINE_S: Final = 120.0
_AUDIT_LINE: Final = re.compile(r"Principal = .*? with resourceRefCount = \d+")
_AUDIT_LOGGER: Final = "kafka.authorizer.logger"
_BROKER_LOGGERS: Final = 8
_ANY_ACL: Final[dict[str, Any]] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
CLOSED: Final = {"the broker": "closed the connection"}
_KEPT: Final = re.compile(
    r"(?:.*_)?error_code|error_message|.*authorized_operations|name|topic|topic_name|group_id|transactional_id"
    r"|partition_index|index|user|resource_name|key|no_acls|acls|.*_configs_error_code"
)
"""The fields that are compared: errors with what they are about, and the bits of operations."""


class Asker:
    """A connection from one address. It connects again where the broker has closed it."""

    def __init__(self, port: int, host: str) -> None:
        self._port, self._host = port, host
        self._socket: socket.socket | None = None
        self._correlation_id = 0

    def ask(self, api: ApiKey, version: int, fields: dict[str, Any]) -> dict[str, Any]:
        """The response as plain values; CLOSED where there is none."""
        if self._socket is None:
            self._socket = socket.create_connection(
                ("127.0.0.1", self._port), _DEADLINE_S, source_address=(self._host, 0)
            )
        self._correlation_id += 1
        frame = request_frame(api, version, self._correlation_id, fields)
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
            (size,) = struct.unpack(">i", self._exactly(4))
            return plain_response(api, version, self._exactly(size), self._correlation_id)
        except (ConnectionError, EOFError):
            self.close()
            return CLOSED

    def _exactly(self, count: int) -> bytes:
        assert self._socket is not None
        received = bytearray()
        while len(received) < count:
            piece = self._socket.recv(count - len(received))
            if not piece:
                raise EOFError
            received += piece
        return bytes(received)

    def close(self) -> None:
        """May be called twice."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


@contextmanager
def asking(port: int, host: str) -> Iterator[Asker]:
    """A connection from `host` for the length of the block."""
    asker = Asker(port, host)
    try:
        yield asker
    finally:
        asker.close()


class Asking(Protocol):
    """Who asks: its name, and the address that it asks from."""

    @property
    def host(self) -> str: ...


class Side:
    """One broker with some ACLs, by default those of all callers, a topic, a group and a transactional id."""

    def __init__(self, broker: Broker, acls: Sequence[Binding] | None = None) -> None:
        self.broker = broker
        with asking(broker.port, ADMIN_HOST) as admin:
            self._admin = admin
            self.create_acls(all_acls() if acls is None else acls)
            self._create_topic()
            self.create_group_and_transaction()
            self._log_audit()
            self.topic_id = self._topic_id()

    def responses(self, request: Request, callers: Iterable[Asking] = CALLERS) -> dict[str, Any]:
        """Caller -> what is compared of its response."""
        found = {}
        for caller in callers:
            names = Names(self.topic_id, caller.host)
            with asking(self.broker.port, caller.host) as asker:
                found[str(caller)] = compared(asker.ask(request.api, request.version, request.fields(names)))
        return found

    def audit(self) -> Counter[str]:
        """The lines about what callers were denied so far."""
        lines = _AUDIT_LINE.findall(self.broker.service.output())
        return Counter(line for line in lines if f"host = {ADMIN_HOST} " not in line)

    def by(self, admin: Asker) -> Side:
        """Itself; the administrator's next requests go through this connection."""
        self._admin = admin
        return self

    def _ask(self, api: ApiKey, version: int, **fields: Any) -> dict[str, Any]:
        return self._admin.ask(api, version, fields)

    def create_acls(self, acls: Sequence[Binding]) -> None:
        """By the administrator."""
        response = self._ask(ApiKey.CREATE_ACLS, 3, creations=[creation(acl) for acl in acls])
        assert [result["error_code"] for result in response["results"]] == [0] * len(acls), response["results"][:3]

    def delete_acls(self) -> None:
        """All of them, by the administrator."""
        response = self._ask(ApiKey.DELETE_ACLS, 3, filters=[_ANY_ACL])
        assert response["filter_results"][0]["error_code"] == 0, response

    def _create_topic(self) -> None:
        topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
        response = self._ask(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=60000)
        assert response["topics"][0]["error_code"] == 0, response

    def create_group_and_transaction(self) -> None:
        """By the administrator, again where a caller has deleted them."""
        partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
        topics = [{"name": TOPIC, "partitions": [partition]}]

        def commit() -> bool:
            self._ask(ApiKey.FIND_COORDINATOR, 0, key=GROUP)
            response = self._ask(
                ApiKey.OFFSET_COMMIT, 2, group_id=GROUP, generation_id_or_member_epoch=-1, topics=topics
            )
            return bool(response["topics"][0]["partitions"][0]["error_code"] == 0)

        def init() -> bool:
            self._ask(ApiKey.FIND_COORDINATOR, 1, key=TXN, key_type=1)
            asked = {"producer_id": -1, "producer_epoch": -1, "transaction_timeout_ms": 60000}
            return bool(self._ask(ApiKey.INIT_PRODUCER_ID, 5, transactional_id=TXN, **asked)["error_code"] == 0)

        eventually(commit, "the group's coordinator")
        eventually(init, "the transaction's coordinator")

    def _log_audit(self) -> None:
        config = {"name": _AUDIT_LOGGER, "config_operation": 0, "value": "INFO"}
        resource = {"resource_type": _BROKER_LOGGERS, "resource_name": str(self.broker.node_id), "configs": [config]}
        response = self._ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False)
        assert response["responses"][0]["error_code"] == 0, response

    def _topic_id(self) -> bytes:
        response = self._ask(ApiKey.METADATA, 12, topics=[{"name": TOPIC}], allow_auto_topic_creation=False)
        topic_id = response["topics"][0]["topic_id"]
        return topic_id if isinstance(topic_id, bytes) else bytes.fromhex(topic_id)


def compared(response: Any) -> Any:
    """Errors and what they are about; lists in an order of their own."""
    if isinstance(response, list):
        parts = [part for part in map(compared, response) if part not in ({}, None)]
        return sorted(parts, key=repr)
    if not isinstance(response, dict):
        return response
    kept = {}
    for name, value in response.items():
        if isinstance(value, (list, dict)):
            nested = compared(value)
            if isinstance(value, dict) or any(isinstance(part, dict) for part in value):
                kept[name] = nested
        elif name == "error_message":
            kept[name] = value and "some text"  # the words are each broker's own
        elif _KEPT.fullmatch(name) or response is CLOSED:
            kept[name] = value
    return kept


AUTHORIZED: Final = {
    "kpybroker.log.client.lines.max": "0",  # every denial of both brokers is compared; Kafka passes over the key
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000",
    "log.retention.ms": "-1",  # the records are old, and each broker looks for such at its own times
}


@contextmanager
def running_sides(
    directory: Path, keys: Mapping[str, str], acls: Sequence[Binding] | None = None, *, admin: bool = True
) -> Iterator[tuple[Side, Side]]:
    """Kafka and kpybroker, on two parts of one ZooKeeper. `admin`: the tree has an ACL of the administrator."""
    zookeeper = ZooKeeper(directory / "zookeeper")
    brokers = []
    try:
        zookeeper.start()
        for kind in ("kafka", "kpybroker"):
            if admin:
                allow_admin(f"{zookeeper.connect}/{kind}")
            broker = Broker(kind, directory / kind, f"{zookeeper.connect}/{kind}", {**AUTHORIZED, **keys})
            brokers.append(broker)
            broker.launch()
        kafka, ours = (Side(broker, acls) for broker in brokers)
        yield kafka, ours
    finally:
        for broker in brokers:
            broker.service.kill()
        zookeeper.stop()


def differences(sides: tuple[Side, Side], request: Request, callers: Sequence[Asking] = CALLERS) -> str:
    """What the two brokers return or audit differently, as a report; empty if they are alike."""
    kafka, ours = sides
    before = kafka.audit(), ours.audit()
    expected, found = kafka.responses(request, callers), ours.responses(request, callers)
    different = {
        caller: (expected[caller], found[caller])
        for caller in expected
        if expected[caller] != found[caller] and not is_listed(request, expected[caller], found[caller])
    }
    lines = [f"{caller}:\n  kafka {theirs}\n  ours  {our}" for caller, (theirs, our) in different.items()]
    denied = [dict(sorted((side.audit() - earlier).items())) for side, earlier in zip(sides, before, strict=True)]
    if denied[0] != denied[1]:
        lines.append(f"denials:\n  kafka {denied[0]}\n  ours  {denied[1]}")
    return "\n".join([f"{len(lines)} differences", *lines[:6]]) if lines else ""
