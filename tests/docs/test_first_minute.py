"""The pictures of terminals show what the commands print today."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from kpybroker import __version__
from kpybroker.cli.banner import Address, Facts, Node, banner, ready_line
from tests.support.programs.samples import ROOT, module_of

START = ROOT / "docs" / "start"
AGAIN = "run python docs/_ext/terminal.py"


@pytest.fixture(scope="module")
def terminal() -> ModuleType:
    return module_of(ROOT / "docs" / "_ext" / "terminal.py")


def test_the_broker_prints_these_lines() -> None:
    text = (START / "first-minute.txt").read_text(encoding="utf-8")
    cluster_id, directory = re.findall(r"of cluster (\S+),", text)[0], re.findall(r"data +(\S+)", text)[0]
    address = Address("PLAINTEXT", "127.0.0.1", 9092)
    facts = Facts(
        nodes=[Node(0, [address])],
        cluster_id=cluster_id,
        version=__version__,
        log_dirs=[directory],
        coordination="embedded, in the log directory",
        ephemeral=True,
        fsync_each=False,
    )
    assert f"{ready_line(facts)}\n{banner(facts)}" in text, AGAIN


def test_every_picture_is_drawn_from_its_text_which_has_its_commands(terminal: ModuleType) -> None:
    assert len(terminal.PICTURES) == 2
    for name, steps in terminal.PICTURES.items():
        lines = (ROOT / "docs" / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
        assert (ROOT / "docs" / f"{name}.svg").read_text(encoding="utf-8") == terminal.drawing(lines), AGAIN
        assert [line[2:] for line in lines if line.startswith("$ ")][-len(steps) :] == list(steps), AGAIN
