"""A broker that does nothing but respond: what a client makes of it is about what its core can do.

    python -m compat_tests.bench.limits.responses_only PORT [TLS_PORT PEM]

The bytes of a Produce are taken off the socket without being copied (`MSG_TRUNC`), looked at, or kept, and all is well.
With the PEM file of a key and its certificate there is a TLS port too, whose bytes are decrypted, and no more.
Every topic that is asked for has one partition, which this broker leads. One thread a connection, which waits in
`recv`: there is no earlier response. Only for acks=1 and acks=all.
"""

from __future__ import annotations

import socket
import ssl
import struct
import sys
import threading
from collections.abc import Callable
from io import BufferedReader
from typing import Any

from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.headers import parse_request_header
from kpybroker.wire.messages.api_versions import ApiVersionsResponse
from kpybroker.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kpybroker.wire.messages.init_producer_id import InitProducerIdResponse
from kpybroker.wire.messages.metadata import MetadataRequest, MetadataResponse
from kpybroker.wire.messages.produce import ProduceResponse
from kpybroker.wire.schema import Message

READY = "responds only"
HOST = "127.0.0.1"
VERSIONS = {
    ApiKey.PRODUCE: (7, 7),
    ApiKey.METADATA: (0, 8),
    ApiKey.API_VERSIONS: (0, 2),
    ApiKey.CREATE_TOPICS: (0, 4),
    ApiKey.DELETE_TOPICS: (0, 3),
    ApiKey.INIT_PRODUCER_ID: (0, 1),
}
"""None of them flexible: all headers are the same."""
NODE = 0
SIZE_KEY_VERSION_ID = struct.Struct(">ihhi")
SIZE_AND_ID = struct.Struct(">ii")
STRING_LENGTH = struct.Struct(">h")
NAMES_BYTES_MAX = 512
"""Client id, transactional id, and topic lie within."""
FIXED_BYTES = 2 + 4 + 4
"""acks, timeout, count of topics: what is between the transactional id and the topic."""
PIECE_BYTES = 1 << 20


class Responses:
    """What is said to a request, by its API."""

    def __init__(self, port: int) -> None:
        self._node = MetadataResponse.MetadataResponseBroker(node_id=NODE, host=HOST, port=port)
        self._by_key: dict[int, Callable[[Any], Message]] = {
            ApiKey.METADATA: self._metadata,
            ApiKey.API_VERSIONS: lambda _: _api_versions(),
            ApiKey.CREATE_TOPICS: _created,
            ApiKey.DELETE_TOPICS: _deleted,
            ApiKey.INIT_PRODUCER_ID: lambda _: InitProducerIdResponse(producer_id=1, producer_epoch=0),
        }

    def to(self, frame: bytes) -> bytes:
        """The body for a request that is no Produce."""
        header = parse_request_header(frame)
        key, version = ApiKey(header.api_key), header.api_version
        if key is ApiKey.API_VERSIONS and version > VERSIONS[key][1]:
            return encode(_api_versions(ErrorCode.UNSUPPORTED_VERSION), 0)
        request = decode(API_INFO[key].request_class(), frame[header.body_offset :], version)
        return encode(self._by_key[key](request), version)

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        partition = MetadataResponse.MetadataResponsePartition(leader_id=NODE, replica_nodes=[NODE], isr_nodes=[NODE])
        topics = [
            MetadataResponse.MetadataResponseTopic(name=topic.name, partitions=[partition])
            for topic in request.topics or ()
        ]
        return MetadataResponse(brokers=[self._node], cluster_id=READY, controller_id=NODE, topics=topics)


def _api_versions(error: ErrorCode = ErrorCode.NONE) -> ApiVersionsResponse:
    served = [
        ApiVersionsResponse.ApiVersion(api_key=key, min_version=lowest, max_version=highest)
        for key, (lowest, highest) in VERSIONS.items()
    ]
    return ApiVersionsResponse(error_code=error, api_keys=served)


def _created(request: CreateTopicsRequest) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[CreateTopicsResponse.CreatableTopicResult(name=topic.name) for topic in request.topics]
    )


def _deleted(request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[DeleteTopicsResponse.DeletableTopicResult(name=name) for name in request.topic_names]
    )


def _produced(topic: str) -> bytes:
    partition = ProduceResponse.PartitionProduceResponse(base_offset=0, log_start_offset=0)
    done = ProduceResponse.TopicProduceResponse(name=topic, partition_responses=[partition])
    return encode(ProduceResponse(responses=[done]), VERSIONS[ApiKey.PRODUCE][0])


def _topic_of(names: bytes) -> str:
    """Of a Produce, from its client id on."""
    position = 0
    for follows in (0, FIXED_BYTES):  # client id and transactional id, which may be null
        (length,) = STRING_LENGTH.unpack_from(names, position)
        position += 2 + max(length, 0) + follows
    (length,) = STRING_LENGTH.unpack_from(names, position)
    return names[position + 2 : position + 2 + length].decode()


class Plain:
    """What a socket receives."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._nowhere = bytearray(PIECE_BYTES)

    def take(self, size: int) -> bytes:
        """So many bytes, fewer at the end."""
        return self._sock.recv(size, socket.MSG_WAITALL)

    def drop(self, size: int) -> int:
        """Read up to so many bytes and keep none; how many, 0 at the end."""
        return self._sock.recv_into(self._nowhere, min(size, PIECE_BYTES), socket.MSG_TRUNC)


class Tls(Plain):
    """What a TLS socket receives."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        super().__init__(sock)
        self._decrypted = BufferedReader(socket.SocketIO(sock, "r"), PIECE_BYTES)

    def take(self, size: int) -> bytes:
        return self._decrypted.read(size)

    def drop(self, size: int) -> int:
        return self._decrypted.readinto(memoryview(self._nowhere)[: min(size, PIECE_BYTES)])


def serve(sock: socket.socket, responses: Responses) -> None:
    """One connection, until its client leaves."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    received = Tls(sock) if isinstance(sock, ssl.SSLSocket) else Plain(sock)
    produced: dict[str, bytes] = {}
    while len(head := received.take(SIZE_KEY_VERSION_ID.size)) == SIZE_KEY_VERSION_ID.size:
        size, key, _, correlation_id = SIZE_KEY_VERSION_ID.unpack(head)
        left = size - (SIZE_KEY_VERSION_ID.size - 4)
        if key == ApiKey.PRODUCE:
            names = received.take(min(left, NAMES_BYTES_MAX))
            left -= len(names)
            while left:
                left -= received.drop(left) or left
            topic = _topic_of(names)
            body = produced.get(topic) or produced.setdefault(topic, _produced(topic))
        else:
            body = responses.to(head[4:] + (received.take(left) if left else b""))
        sock.sendall(SIZE_AND_ID.pack(4 + len(body), correlation_id) + body)


def _serve(sock: socket.socket, responses: Responses, context: ssl.SSLContext | None) -> None:
    try:
        with sock if context is None else context.wrap_socket(sock, server_side=True) as stream:
            serve(stream, responses)
    except OSError:
        return


def listen(port: int, responses: Responses, context: ssl.SSLContext | None = None) -> None:
    """Accept connections forever, in a thread of its own."""
    listener = socket.create_server((HOST, port))

    def accept() -> None:
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=_serve, args=(sock, responses, context), daemon=True).start()

    threading.Thread(target=accept).start()


def main() -> None:
    port = int(sys.argv[1])
    listen(port, Responses(port))
    if len(sys.argv) > 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[3])
        listen(int(sys.argv[2]), Responses(int(sys.argv[2])), context)
    print(READY, flush=True)


if __name__ == "__main__":
    main()
