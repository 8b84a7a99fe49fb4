"""The orders of the JVM's maps, as observed in real ones."""

from __future__ import annotations

from kpybroker.wire.map_order import java_hash, scala_hash_map_order


def test_hashes_are_javas() -> None:
    assert java_hash("") == 0
    assert java_hash("range") == 108280125


def test_a_small_scala_hash_map_has_the_order_of_its_trie() -> None:
    """Kafka 3.9.1 chose roundrobin of two protocols with one vote each, whichever member joined first."""
    assert scala_hash_map_order(("range", "roundrobin")) == ("roundrobin", "range")
    assert scala_hash_map_order(("roundrobin", "range")) == ("roundrobin", "range")
