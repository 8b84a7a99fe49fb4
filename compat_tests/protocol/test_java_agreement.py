"""Damaged requests: what Kafka's own classes read we read alike, and what they refuse we refuse.

Frames are mutated from the fuzzer's corpus with a fixed seed. Where the two part is listed, each with its reason.
"""

from __future__ import annotations

from random import Random

from compat_tests.protocol.kafka_messages import ask_java, definitions
from kpybroker.wire.api import API_INFO, ApiInfo, ApiKey
from kpybroker.wire.codec import decode_from, encode
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.headers import parse_request_header
from tests.wire.fuzz.fuzz_decode import Mutator, read_corpus

CASES = 15_000

# part of our text -> why we are stricter
STRICTER = {
    "not UTF-8": "Java replaces the bytes, so that the string it returns is not the one it was sent",
    "does not fill its": "Java never looks at the size of a tagged field it knows",
    "tagged field": "the same, for a size beyond the frame",
    "still allowed": "the bound on elements",
    "longer than 31 bits": "Java drops the bits above the 32nd, and takes any negative length for null",
}


def mutated_requests() -> list[tuple[ApiInfo, int, bytes]]:
    random = Random(5)
    mutator = Mutator(random)
    corpus = read_corpus()
    served = {int(key): info for key, info in API_INFO.items()}
    cases: list[tuple[ApiInfo, int, bytes]] = []
    while len(cases) < CASES:
        frame = mutator.mutate(random.choice(corpus), random.choice(corpus))
        try:
            header = parse_request_header(frame)
        except ProtocolError:
            continue
        info = served.get(header.api_key)
        if info is not None and info.supports(header.api_version):
            cases.append((info, header.api_version, frame[header.body_offset :]))
    return cases


def our_response(info: ApiInfo, version: int, body: bytes) -> str:
    """In the words of RoundTrip.java."""
    try:
        message, end = decode_from(info.request_class(), body, 0, version)
    except ProtocolError as error:
        return f"error {error}"
    if end != len(body):
        return f"error {len(body) - end} bytes were not read"
    try:
        return encode(message, version).hex()
    except ValueError as error:
        return f"error {error}"


def disagreement(ours: str, java: str) -> bool:
    both_refuse = ours.startswith("error") and java.startswith("error")
    return ours != java and not both_refuse and not any(text in ours for text in STRICTER)


def test_java_and_we_read_and_refuse_the_same_requests() -> None:
    known = definitions()
    cases = mutated_requests()
    classes = {ApiKey(info.key): known[f"{info.name}Request"][0]["javaClass"] for info, _, _ in cases}
    responses = ask_java(f"read {classes[info.key]} {version} {body.hex()}" for info, version, body in cases)
    agreed = 0
    for (info, version, body), java in zip(cases, responses, strict=True):
        ours = our_response(info, version, body)
        assert not disagreement(ours, java), f"{info.name} {version} {body.hex()}\n ours {ours}\n java {java}"
        agreed += not java.startswith("error")
    assert agreed > CASES // 10
