"""Who leads: one that leads already, else the smallest URL; and messages in the form of Confluent's registry."""

from __future__ import annotations

import json

import pytest

from kpybroker.registry.election import protocol
from kpybroker.registry.election.protocol import Assignment, Identity

ONE, TWO, THREE = (Identity("http", "host", port) for port in (8081, 8082, 8083))


def test_identities_and_assignments_are_confluents() -> None:
    assert json.loads(protocol.encode_identity(ONE)) == {
        "version": 1,
        "host": "host",
        "port": 8081,
        "master_eligibility": True,
        "scheme": "http",
        "leader": False,
    }
    assignment = protocol.choose({"m": ONE})
    assert json.loads(protocol.encode_assignment(assignment)) == {
        "version": 1,
        "error": 0,
        "master": "m",
        "master_identity": json.loads(protocol.encode_identity(ONE)),
    }
    assert protocol.decode_assignment(protocol.encode_assignment(assignment)) == assignment
    old = b'{"host":"h","port":1,"master_eligibility":true}'
    assert protocol.decode_identity(old) == Identity("http", "h", 1)


def test_a_leader_stays_and_else_the_smallest_url_is_chosen() -> None:
    assert protocol.choose({"b": TWO, "a": THREE, "c": ONE}).leader == ONE
    leading = TWO._replace(is_leader=True)
    assert protocol.choose({"a": ONE, "b": leading}) == Assignment(0, "b", leading)
    both = {"a": ONE._replace(is_leader=True), "b": leading}
    assert protocol.choose(both).member_id == "a", "two that lead are one too many"


def test_who_may_not_lead_is_never_chosen() -> None:
    shy = ONE._replace(is_eligible=False, is_leader=True)
    assert protocol.choose({"a": shy, "b": TWO}).member_id == "b"
    assert (
        protocol.choose({"a": shy}) == protocol.choose({}) == protocol.choose({"x": None}) == Assignment(0, None, None)
    )
    assert protocol.decode_assignment(protocol.encode_assignment(Assignment(0, None, None))).leader is None


def test_two_with_one_url_are_an_error() -> None:
    assert protocol.choose({"a": ONE, "b": ONE}).error == protocol.DUPLICATE_URLS


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"{}", b'{"host":1,"port":"x"}', b"[" * 100_000])
def test_bytes_that_are_no_message_lead_to_no_leader(data: bytes) -> None:
    assert protocol.decode_identity(data) is None
    assert protocol.decode_assignment(data).leader is None


def test_an_ipv6_address_is_in_brackets() -> None:
    assert Identity("https", "::1", 1).url == "https://[::1]:1"
