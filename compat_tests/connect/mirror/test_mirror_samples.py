"""The files for MirrorMaker 2 of the guide to mirroring, with addresses of brokers that run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from compat_tests.conftest import StartBroker
from compat_tests.connect.mirror.mirrors import MirrorMaker
from compat_tests.connect.workers import DEADLINE_S
from compat_tests.support import quick
from compat_tests.support.topics.origin import Origin, topics
from compat_tests.support.waiting import eventually
from kpybroker.config.sources.properties import load_properties
from tests.support.network.ports import free_port
from tests.support.programs.samples import SAMPLES

GROUP = "readers"


@contextmanager
def mirror(sample: str, addresses: Mapping[str, str], directory: Path) -> Iterator[None]:
    """It runs as the guide has it, but that it looks for new groups and topics every second."""
    properties = load_properties(str(SAMPLES / "mirroring" / sample))
    for alias, bootstrap in addresses.items():
        assert properties[f"{alias}.bootstrap.servers"] == f"{alias}.example.com:9092"
        properties[f"{alias}.bootstrap.servers"] = bootstrap
    properties["listeners"] = f"http://127.0.0.1:{free_port()}"
    properties |= {"refresh.topics.interval.seconds": "1", "refresh.groups.interval.seconds": "1"}
    maker = MirrorMaker("3.9.1", directory, properties)
    try:
        maker.start()
        yield
    finally:
        maker.close()


def test_one_way(own_broker: StartBroker, tmp_path: Path) -> None:
    """The topic has its name, each record is there, and a group that has read all stands at the end."""
    old, new = own_broker(), own_broker()
    origin = Origin(old, "orders", 2)
    origin.write(10)
    origin.write_in_transactions(5)
    parts = [("orders", 0), ("orders", 1)]
    quick.read(old.bootstrap, parts, origin.count, group=GROUP)
    with mirror("one-way.properties", {"old": old.bootstrap, "new": new.bootstrap}, tmp_path):
        copies = origin.arrived(new, "orders")
        origin.write(1)
        copies = origin.arrived(new, "orders")

        def stands() -> bool:
            found = quick.committed(new.bootstrap, GROUP, parts)
            before = [sum(one.offset() < at for one in part) for part, at in zip(copies, found, strict=True)]
            assert all(at >= 0 for at in found), found
            assert all(0 < count <= len(part) - 5 for count, part in zip(before, copies, strict=True)), before
            return True

        eventually(stands, f"{GROUP} is translated", DEADLINE_S)
    assert not [name for name in topics(new.bootstrap) if re.search(r"\.orders$", name)]


def test_both_ways(own_broker: StartBroker, tmp_path: Path) -> None:
    east, west = own_broker(), own_broker()
    brokers = {"east": east, "west": west}
    origins = {alias: Origin(broker, "orders", 2) for alias, broker in brokers.items()}
    for origin in origins.values():
        origin.write(10)
    addresses = {alias: broker.bootstrap for alias, broker in brokers.items()}
    with mirror("both-ways.properties", addresses, tmp_path):
        origins["east"].arrived(west, "east.orders")
        origins["west"].arrived(east, "west.orders")
    assert {name for name in topics(east.bootstrap) if "orders" in name} == {"orders", "west.orders"}
