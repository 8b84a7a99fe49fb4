"""What an authorizer with 10 000 ACLs costs a one-record Produce and a Fetch, in CPU time of this process; a table of
`make bench-extras`.

The whole request counts: its turn of the loop, its share of the socket, and the response. The response is measured with
and without the authorizer in turns, and the least of each counts, so that a busy machine matters little.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from compat_tests.bench.budget import (
    TOPIC,
    ProduceCalls,
    fetch_frame,
    microseconds,
    one_record,
    socket_share,
    turn,
)
from compat_tests.bench.load.raw_producer import request_frame
from kpybroker.broker.app import Broker
from kpybroker.broker.network.response import Response
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.authorizer import AllowAll, Operation, ResourceType
from kpybroker.core.security.acl_authorizer import AclIndex, VersionedAcls
from kpybroker.core.security.acls import Entry, Pattern, PatternType, Permission

ACLS = 10_000
PREFIXES = 1_000
OF_THE_TOPIC = 50
TURNS = 3


def fill(index: AclIndex) -> None:
    """ACLs of many topics and prefixes, and of the measured topic, whose last one allows the client."""
    allowed = Entry("User:ANONYMOUS", "*", Operation.ALL, Permission.ALLOW)
    others = [Entry(f"User:{n}", "*", Operation.ALL, Permission.ALLOW) for n in range(OF_THE_TOPIC - 1)]
    index.update(Pattern(ResourceType.TOPIC, TOPIC), VersionedAcls((*others, allowed), 0))
    for number in range(ACLS - OF_THE_TOPIC):
        kind = PatternType.PREFIXED if number < PREFIXES else PatternType.LITERAL
        index.update(Pattern(ResourceType.TOPIC, f"topic-{number}", kind), VersionedAcls((allowed,), 0))


def fetching(broker: Broker) -> Callable[[], None]:
    """Responds to one Fetch of the last record."""
    frame = memoryview(fetch_frame(broker.replicas.hosted(TOPIC, 0).leader_log().log_end_offset - 1))
    connection = PlainConnectionInfo()

    def respond() -> None:
        response = broker.dispatcher.respond_now(frame, connection)
        assert isinstance(response, Response)
        response.sent()

    return respond


async def compare(broker: Broker, call: Callable[[], None], rest: float) -> dict[str, float]:
    """µs of a request with and without the authorizer."""
    authorizers = {"without": AllowAll(), "with": broker.authorizer}
    least = dict.fromkeys(authorizers, float("inf"))
    for _ in range(TURNS):
        for which, authorizer in authorizers.items():
            broker.authorizer = authorizer
            least[which] = min(least[which], microseconds(call) + rest)
    return least


def lost(took: dict[str, float]) -> float:
    """The share of a request's time that the authorizer takes."""
    return 1 - took["without"] / took["with"]


async def measure(directory: str) -> list[tuple[str, dict[str, float]]]:
    """µs of a Produce and of a Fetch with and without the authorizer."""
    props = {
        "broker.id": "0",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(Path(directory) / "data"),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    }
    async with Broker.open(BrokerConfig(props)) as broker:
        assert broker.acls is not None
        fill(broker.acls.index)
        await broker.topics.auto_create([TOPIC])
        await broker.dispatcher.respond(bytearray(request_frame(TOPIC)[4:]), PlainConnectionInfo())
        produce = ProduceCalls(broker, one_record())
        rest = await turn() + await socket_share(len(produce.frame) + 4, 60)
        took = [("Produce", await compare(broker, produce.respond, rest))]
        frame = fetch_frame(0)
        rest = await turn() + await socket_share(len(frame) + 4, 250)
        took.append(("Fetch", await compare(broker, fetching(broker), rest)))
    return took
