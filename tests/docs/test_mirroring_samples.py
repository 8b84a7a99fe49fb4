"""The commands of the guide to mirroring, between two brokers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.conftest import Run
from tests.support.programs.command_line import invoke
from tests.support.programs.samples import DevBroker, dev_broker, run_sample


@pytest.fixture
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DevBroker, DevBroker]]:
    directory = tmp_path_factory.mktemp("both")
    with dev_broker(directory / "old") as old, dev_broker(directory / "new") as new:
        yield old, new


def test_topics_are_copied_and_nothing_is_left(
    both: tuple[DevBroker, DevBroker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = both

    def at(broker: DevBroker) -> Run:
        return lambda *arguments, stdin=b"": invoke(monkeypatch, *arguments, "-b", broker.bootstrap, stdin=stdin)

    at(old)("topic", "create", "shop.orders", "-p", "3")
    at(old)("topic", "create", "other")
    assert at(old)("topic", "produce", "shop.orders", "-K:", stdin=b"a:1\nb:2\nc:3\n").code == 0
    places = {"old.example.com:9092": old.bootstrap, "new.example.com:9092": new.bootstrap}
    out = run_sample("mirroring/mirror.sh", tmp_path, places)
    assert re.search(r"^kpybroker-mirror-\S+ .* 0$", out, re.MULTILINE), out
    assert sorted(at(new)("topic", "consume", "shop.orders", "-e", "-f", "%k%v\\n").lines) == ["a1", "b2", "c3"]
    assert "other" not in at(new)("topic", "list").text
