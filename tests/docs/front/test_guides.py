"""Each guide says before its first step what one needs, what one sees when it has worked, and how to undo it."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from kpybroker.cli.main import cli

GUIDES_FOLDER = Path(__file__).parents[3] / "docs" / "guides"
GUIDES = sorted(page for page in GUIDES_FOLDER.rglob("*.md") if page.name != "index.md")
LABELS = ("You need", "You see", "To undo it")


def parts(page: Path) -> dict[str, str]:
    """What stands after each label, above the first heading of a part."""
    first = page.read_text(encoding="utf-8").partition("\n## ")[0]
    items = re.findall(r"^- \*\*([^*]+)\*\*: (.*(?:\n  .*)*)", first, re.MULTILINE)
    return {label: " ".join(text.split()) for label, text in items if label in LABELS}


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.relative_to(GUIDES_FOLDER).as_posix())
def test_a_guide_says_what_one_needs_and_sees_and_how_to_undo_it(page: Path) -> None:
    said = parts(page)
    assert tuple(said) == LABELS
    above, _, below = page.read_text(encoding="utf-8").partition(f"- **{LABELS[0]}**")
    assert above.endswith((".\n\n", "```\n\n", "|\n\n")), "it is inside of another list"
    assert below.count("\n- ", 0, below.find("\n\n")) == 2, "other items follow without a blank line"
    assert all(len(text.split()) >= 4 for text in said.values()), said
    for words in re.findall(r"`kpybroker ([^`]+)`", " ".join(said.values())):
        group: click.Command | None = cli
        for word in words.split():
            if not isinstance(group, click.Group) or word.startswith("-") or (word == "ready"):
                break
            group = group.get_command(click.Context(group), word)
            assert group is not None, f"kpybroker {words}: {word} is no command"


def test_there_are_as_many_as_the_index_names() -> None:
    index = (GUIDES_FOLDER / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\]\(([\w/-]+\.md)\)", index))
    missing = {page.relative_to(GUIDES_FOLDER).as_posix() for page in GUIDES} - listed
    assert {name for name in missing if not name.startswith("pipelines/")} == set()
