"""A broker that does nothing but answer: what a client makes of it is about what its core can do.

    python -m compat_tests.bench.answers_only PORT

The bytes of a Produce are taken off the socket without being copied (`MSG_TRUNC`), looked at, or kept, and all is well.
Every topic that is asked for has one partition, which this broker leads. One thread a connection, which waits in
`recv`: there is no earlier answer. Only for acks=1 and acks=all.
"""

from __future__ import annotations

import socket
import struct
import sys
import threading
from collections.abc import Callable
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

READY = "answers only"
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


class Answers:
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


def serve(sock: socket.socket, answers: Answers) -> None:
    """One connection, until its client leaves."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    produced: dict[str, bytes] = {}
    nowhere = bytearray(PIECE_BYTES)
    while len(head := sock.recv(SIZE_KEY_VERSION_ID.size, socket.MSG_WAITALL)) == SIZE_KEY_VERSION_ID.size:
        size, key, _, correlation_id = SIZE_KEY_VERSION_ID.unpack(head)
        left = size - (SIZE_KEY_VERSION_ID.size - 4)
        if key == ApiKey.PRODUCE:
            names = sock.recv(min(left, NAMES_BYTES_MAX), socket.MSG_WAITALL)
            left -= len(names)
            while left:
                left -= sock.recv_into(nowhere, min(left, PIECE_BYTES), socket.MSG_TRUNC) or left
            topic = _topic_of(names)
            body = produced.get(topic) or produced.setdefault(topic, _produced(topic))
        else:
            body = answers.to(head[4:] + (sock.recv(left, socket.MSG_WAITALL) if left else b""))
        sock.sendall(SIZE_AND_ID.pack(4 + len(body), correlation_id) + body)


def _serve(sock: socket.socket, answers: Answers) -> None:
    try:
        with sock:
            serve(sock, answers)
    except ConnectionError:
        return


def main() -> None:
    port = int(sys.argv[1])
    answers = Answers(port)
    with socket.create_server((HOST, port)) as listener:
        print(READY, flush=True)
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=_serve, args=(sock, answers), daemon=True).start()


if __name__ == "__main__":
    main()
