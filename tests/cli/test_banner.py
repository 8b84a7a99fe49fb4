"""The ready banner."""

from __future__ import annotations

import pytest

from kpybroker.cli.banner import Address, BrokerFacts, banner, durability, reachable, ready_line


@pytest.mark.parametrize(
    ("address", "line", "typed"),
    [
        (Address("A", "127.0.0.1", 9092), "kpybroker ready at 127.0.0.1:9092", "127.0.0.1:9092"),
        (Address("A", "::1", 9092), "kpybroker ready at [::1]:9092", "[::1]:9092"),
        (Address("A", "::", 9092), "kpybroker ready at [::]:9092", "127.0.0.1:9092"),
        (Address("A", "0.0.0.0", 9092), "kpybroker ready at 0.0.0.0:9092", "127.0.0.1:9092"),
    ],
)
def test_the_first_line_is_for_programs(address: Address, line: str, typed: str) -> None:
    assert ready_line([address]) == line
    assert reachable(address) == typed


def test_the_rest_says_where_what_and_how() -> None:
    facts = BrokerFacts(
        node_id=3,
        cluster_id="abc",
        version="9.9",
        log_dirs=["/a", "/b"],
        coordination="embedded",
        ephemeral=False,
        fsync_each=False,
    )
    text = banner([Address("A", "127.0.0.1", 9092), Address("B", "127.0.0.1", 9093)], facts)
    for part in ("3 of cluster abc, kpybroker 9.9", "/a, /b", "B at 127.0.0.1:9093", "kcat", "Python", "PySpark"):
        assert part in text


def test_what_is_durable_depends_on_how_it_was_started() -> None:
    assert durability(ephemeral=True, fsync_each=False).startswith("nothing")
    assert "also after a power cut" in durability(ephemeral=False, fsync_each=True)
    assert "if the broker is killed" in durability(ephemeral=False, fsync_each=False)
