"""The picture of the first minute shows what the commands print today."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from kpybroker import __version__
from kpybroker.cli.banner import Address, BrokerFacts, banner, ready_line
from tests.support.samples import ROOT, module_of

START = ROOT / "docs" / "start"
AGAIN = "run python docs/_ext/terminal.py"


@pytest.fixture(scope="module")
def terminal() -> ModuleType:
    return module_of(ROOT / "docs" / "_ext" / "terminal.py")


def test_the_broker_prints_these_lines() -> None:
    text = (START / "first-minute.txt").read_text(encoding="utf-8")
    cluster_id, directory = re.findall(r"of cluster (\S+),", text)[0], re.findall(r"data +(\S+)", text)[0]
    address = Address("PLAINTEXT", "127.0.0.1", 9092)
    facts = BrokerFacts(
        node_id=0,
        cluster_id=cluster_id,
        version=__version__,
        log_dirs=[directory],
        coordination="embedded, in the log directory",
        ephemeral=True,
        fsync_each=False,
    )
    assert f"{ready_line([address])}\n{banner([address], facts)}" in text, AGAIN


def test_the_picture_is_drawn_from_the_text(terminal: ModuleType) -> None:
    lines = (START / "first-minute.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert (START / "first-minute.svg").read_text(encoding="utf-8") == terminal.drawing(lines), AGAIN
