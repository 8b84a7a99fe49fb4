"""Clients that ask for subscriptions and push (KIP-714), next to Kafka 4.3.1.

Kafka has no plug-in that receives: it serves the requests all the same, and drops what is pushed. Instances have fixed
ids, so that the subscription id, which is computed of them, can be compared too.
"""

from __future__ import annotations

from compat_tests.differential.kafka_4.client_metrics import (
    GET,
    PUSH,
    as_software,
    ends,
    gets,
    instance,
    knows,
    matching,
    metrics_data,
    pushes,
    sets,
    sub,
)
from compat_tests.differential.kafka_4.steps import next_to_4
from compat_tests.differential.script import Close, Step, ask
from compat_tests.differential.scripts.configs import CLIENT_METRICS, DELETE, SET, change
from kpybroker.core.client_metrics.subscriptions import NOTHING
from kpybroker.wire.compression import Codec, compress

HOUR = ("interval.ms", "3600000")
SOON = ("interval.ms", "100")
MIB = 1 << 20
PREFIXES = (
    "org.apache.kafka.producer.,org.apache.kafka.consumer.,org.apache.kafka.admin.",
    ",".join(f"m{n}" for n in range(12)),
    ",".join(f"m{n}" for n in range(13)),
    ",".join(f"org.apache.kafka.{n}." for n in range(40)),
    "z,y,x,w,v",
    "\u00e9,a b",
)
MATCHES = (
    "client_id=.*",
    "client_id=differential",
    "client_id=differentia",
    "client_id=diff",
    "client_id=DIFFERENTIAL",
    "client_id=(?i)DIFFERENTIAL",
    "client_software_name=unknown",
    "client_software_version=unknown",
    "client_software_version=.+",
    "client_source_address=127\\.0\\.0\\.1",
    "client_source_address=127\\.0\\.0\\.[2-9]",
    "client_source_port=[0-9]+",
    "client_source_port=1",
    "client_id=.*,client_source_port=1",
    "client_id=.*,client_source_port=.*",
)


def metrics_of(text: str, *more: tuple[str, str]) -> list[Step]:
    return [*sets(sub("", ("metrics", text), *more))]


SCRIPTS = [
    next_to_4(
        "cm-get-nothing",
        GET,
        "without a subscription there is nothing to push, and the default interval",
        gets("nothing"),
        gets("nothing"),
        gets("nothing-2"),
    ),
    next_to_4(
        "cm-get-new-id",
        GET,
        "the broker makes an id for a client that has none; then it is the client's",
        ask(
            GET,
            client_instance_id=bytes(16),
            bind={"made": "client_instance_id", "id": "subscription_id"},
            compared=False,
        ),
        ask(PUSH, v=0, client_instance_id="{made}", subscription_id="{id}"),
        ask(PUSH, v=0, client_instance_id="{made}", subscription_id="{id}"),
        ask(GET, client_instance_id="{made}"),
        ask(GET, client_instance_id=(1).to_bytes(16)),
    ),
    *(
        next_to_4(
            f"cm-prefixes-{n}",
            GET,
            "prefixes are in the order of Kafka's hash set, and the id is a checksum over them",
            metrics_of(text),
            gets(f"prefixes-{n}"),
            ends(""),
        )
        for n, text in enumerate(PREFIXES)
    ),
    *(
        next_to_4(
            f"cm-matching-{n}",
            GET,
            "to whom a subscription applies",
            metrics_of("a", ("match", text)),
            gets(f"matching-{n}"),
            ends(""),
        )
        for n, text in enumerate(MATCHES)
    ),
    next_to_4(
        "cm-matching-software",
        GET,
        "by the software that the client names in ApiVersions",
        metrics_of("a", ("match", "client_software_name=soft,client_software_version=1\\..*")),
        as_software("soft", "1.2"),
        gets("soft"),
        ask(GET, client_instance_id=instance("soft-2"), on="other"),
        ends(""),
    ),
    next_to_4(
        "cm-matching-instance",
        GET,
        "by the id of the instance",
        metrics_of("a", ("match", matching("this one"))),
        gets("this one"),
        gets("another one"),
        ends(""),
    ),
    next_to_4(
        "cm-merged",
        GET,
        "several subscriptions: the metrics of all, at the shortest interval",
        sets(
            sub("-1", ("metrics", "a,b"), ("interval.ms", "200000")),
            sub("-2", ("metrics", "b,c"), ("interval.ms", "250000")),
            sub("-3", ("metrics", "d"), SOON, ("match", "client_id=no one")),
            sub("-4", HOUR),
        ),
        gets("merged"),
        ends("-1", "-2", "-3", "-4"),
    ),
    next_to_4(
        "cm-merged-all",
        GET,
        "one that asks for every metric",
        sets(sub("-1", ("metrics", "a,b")), sub("-2", ("metrics", "c,*"))),
        gets("merged-all"),
        ends("-1", "-2"),
    ),
    next_to_4(
        "cm-merged-default",
        GET,
        "no interval is longer than the default one; one without metrics asks for none",
        sets(sub("-1", ("metrics", "a"), HOUR)),
        gets("merged-default"),
        change(CLIENT_METRICS, "{t}-1", (DELETE, "metrics", None)),
        gets("merged-default", until={"requested_metrics": [[]], "error_code": 0}),
        ends("-1"),
    ),
    next_to_4(
        "cm-get-soon",
        GET,
        "asking again within an interval is throttled, and after it is not",
        metrics_of("a", SOON),
        gets("soon"),
        gets("soon", until={"error_code": 0}),
        ends(""),
    ),
    next_to_4(
        "cm-changed",
        GET,
        "after a change a client may ask at once, and gets another id",
        metrics_of("a"),
        gets("changed"),
        gets("changed", bind={}),
        change(CLIENT_METRICS, "{t}", (SET, "metrics", "b")),
        gets("changed", until={"requested_metrics.0": "b"}, bind={"new": "subscription_id"}),
        pushes("changed", subscription_id="{id}"),
        pushes("changed", subscription_id="{new}"),
        gets("changed", bind={}),
        ends(""),
    ),
    next_to_4(
        "cm-removed",
        PUSH,
        "the id of a subscription that is gone is unknown",
        metrics_of("a"),
        gets("removed"),
        ends(""),
        pushes("removed"),
        gets("removed"),
        pushes("removed"),
    ),
    next_to_4(
        "cm-push",
        PUSH,
        "one at once after asking, and one an interval",
        gets("push"),
        pushes("push"),
        pushes("push"),
        gets("push", bind={}),
        pushes("push"),
    ),
    next_to_4(
        "cm-push-again",
        PUSH,
        "after an interval the next push is taken",
        metrics_of("a", SOON),
        gets("push-again"),
        pushes("push-again"),
        pushes("push-again", until={"error_code": 0}),
        pushes("push-again", until={"error_code": 0}),
        gets("push-again", until={"error_code": 0}),
        ends(""),
    ),
    next_to_4(
        "cm-push-unasked",
        PUSH,
        "an instance that this broker has not seen",
        pushes("unasked", subscription_id=NOTHING.subscription_id(instance("unasked"))),
        pushes("unasked", subscription_id=NOTHING.subscription_id(instance("unasked"))),
        gets("unasked"),
        pushes("never asked", subscription_id=1),
        pushes("never asked", subscription_id=1),
        gets("never asked"),
    ),
    next_to_4(
        "cm-push-ids",
        PUSH,
        "ids of instances that there cannot be",
        *(ask(PUSH, client_instance_id=one, subscription_id=0) for one in (bytes(16), (1).to_bytes(16))),
        ask(PUSH, client_instance_id=(2).to_bytes(16), subscription_id=0),
    ),
    next_to_4(
        "cm-push-unknown",
        PUSH,
        "another subscription id; then the client may ask at once",
        gets("unknown"),
        pushes("unknown", subscription_id=0),
        gets("unknown"),
        gets("unknown"),
        pushes("unknown"),
    ),
    next_to_4(
        "cm-push-last",
        PUSH,
        "the last push may come at any time, and nothing after it",
        gets("last"),
        pushes("last"),
        pushes("last", terminating=True),
        pushes("last", terminating=True),
        pushes("last"),
        pushes("last"),
        gets("last", bind={}),
    ),
    next_to_4(
        "cm-push-last-wrong",
        PUSH,
        "a last push that is refused was the last one too",
        gets("last-wrong"),
        pushes("last-wrong", subscription_id=3, terminating=True),
        pushes("last-wrong", terminating=True),
        gets("last-wrong", bind={}),
    ),
    *(
        next_to_4(
            f"cm-push-codec-{codec}",
            PUSH,
            "kinds of compression; then what may follow",
            gets(f"codec-{codec}"),
            pushes(f"codec-{codec}", metrics_data(2), compression_type=codec),
            gets(f"codec-{codec}", bind={}),
            pushes(f"codec-{codec}", metrics_data(2), compression_type=codec),
            pushes(f"codec-{codec}", b"", compression_type=codec, terminating=True),
        )
        for codec in (-128, -1, *range(6), 127)
    ),
    *(
        next_to_4(
            f"cm-push-{codec.name.lower()}",
            PUSH,
            "bodies up to telemetry.max.bytes, compressed and not",
            *(
                step
                for n, size in enumerate((0, 2, 100_000, MIB, MIB + 1))
                for step in (
                    gets(f"{codec.name}-{n}"),
                    pushes(
                        f"{codec.name}-{n}",
                        compress(codec, metrics_data(size) if size else b""),
                        compression_type=codec,
                    ),
                    gets(f"{codec.name}-{n}", bind={}),
                )
            ),
        )
        for codec in Codec
    ),
    next_to_4(
        "cm-push-order",
        PUSH,
        "of several reasons the first counts",
        gets("order"),
        pushes("order", bytes(MIB + 1), compression_type=9, subscription_id=5),
        pushes("order-2", bytes(MIB + 1), compression_type=9, subscription_id=5),
        gets("order-3"),
        pushes("order-3", bytes(MIB + 1), compression_type=9),
        gets("order-4"),
        pushes("order-4", bytes(MIB + 1), compression_type=4),
        pushes("order-4", bytes(MIB + 1), compression_type=4),
    ),
    next_to_4(
        "cm-disconnected",
        GET,
        "with the connection on which it was first seen the instance is forgotten",
        gets("gone", on="first"),
        gets("gone", on="second", bind={}),
        Close(on="first"),
        gets("gone", on="second", until={"error_code": 0}, bind={}),
        knows(0),
    ),
]
