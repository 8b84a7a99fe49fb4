"""Odd names, and names that do not exist, on small made-up packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house import names, references
from tests.house.test_house import package


def test_odd_names_are_found_where_they_are_defined(tmp_path: Path) -> None:
    odd = "Want" + "ed", "let_" + "go"  # this file is checked as well
    root = package(tmp_path, m=f"from p import {odd[0]}\nx = {odd[0]}()\nclass _{odd[0]}:\n    {odd[1]} = 1\n")
    assert sorted(one.removeprefix(f"{root}/").rpartition(":")[0] for one in names.findings([root])) == [
        f"m.py:3: _{odd[0]}",
        f"m.py:4: {odd[1]}",
    ]


HOLDS_NAMES = """
import other
class BaseThing:
    def inherited(self) -> None: ...
class OneThing(BaseThing):
    some_field: int
    def method(self) -> None: ...
def one_function(some_argument: int) -> None:
    print("kpybroker.a.key", "quoted_word")  # commented_word
"""


@pytest.mark.parametrize(
    ("quoted", "exists"),
    [
        ("one_function", True),
        ("one_function()", True),
        ("some_argument", True),
        ("quoted_word", True),
        ("no_function", False),
        ("commented_word", False),
        ("OneThing", True),
        ("OtherThing", False),
        ("OneThing.method", True),
        ("OneThing.inherited", True),
        ("OneThing.gone", False),
        ("kpybroker.a.m.one_function", True),
        ("kpybroker.a.m.no", False),
        ("m.one_function", True),
        ("m.no", False),
        ("a.m", True),
        ("a.no", False),
        ("kpybroker.a.key", True),
        ("kpybroker.a.*", True),
        ("kpybroker.b.*", False),
        ("kpybroker/a/m.py", True),
        ("kpybroker/a/", True),
        ("kpybroker/a/m", True),
        ("kpybroker/a/*.py", True),
        ("kpybroker/a/{m,n}.py", False),
        ("kpybroker/a/{m,__init__}.py", True),
        ("m.py", True),
        ("n.py", False),
        ("kpybroker/a/m.py::one_function", True),
        ("kpybroker/a/m.py::one_function[x::y]", True),
        ("kpybroker/a/m.py::no", False),
        ("word", True),
        ("GET /metrics", True),
        ("acks=all", True),
        ("group.id=<name>", True),
    ],
)
def test_a_quoted_name_exists(tmp_path: Path, quoted: str, exists: bool) -> None:
    root = tmp_path / "kpybroker"
    (root / "a").mkdir(parents=True)
    (root / "a" / "__init__.py").write_text("")
    (root / "a" / "m.py").write_text(HOLDS_NAMES)
    (root / "docs.py").write_text(f'"""About `{quoted}`, and ``no_such_name`` of another project."""\n')
    found = [one.removeprefix(f"{root}/") for one in references.findings([root])]
    assert [one.partition(": ")[0] for one in found] == ([] if exists else ["docs.py:1"])


def test_paths_without_back_ticks_and_labels_of_drawings(tmp_path: Path) -> None:
    root = package(tmp_path, m="def does_it() -> None: ...\n").rename(tmp_path / "kpybroker")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(
        "See kpybroker/m.py, kpybroker/n.py and docs/page.md.\n"
        "```{graphviz}\n"
        'a [label="x/m\\ndoes_it"]; b [label="in words"];\n'
        'c [label="x/gone\\ndid_it"];\n'
        "```\n"
    )
    (root / "x").mkdir()
    (root / "m.py").rename(root / "x" / "m.py")
    found = list(references.findings([root, tmp_path / "docs"]))
    assert [one.removeprefix(f"{tmp_path}/docs/") for one in found] == [
        "page.md:4: `kpybroker/x/gone`: no such file",
        "page.md:4: `did_it`: nothing here has this name",
        "page.md:1: `kpybroker/m.py`: no such file",
        "page.md:1: `kpybroker/n.py`: no such file",
    ]


def test_names_in_pages(tmp_path: Path) -> None:
    """Settings of other programs are not looked for there, code blocks not read, and notes keep their names."""
    (tmp_path / "kpybroker" / "core").mkdir(parents=True)
    (tmp_path / "kpybroker" / "core" / "m.py").write_text(HOLDS_NAMES)
    (tmp_path / "docs" / "decisions").mkdir(parents=True)
    text = (
        "A `group.remote.assignor` and\n`no_such_name`.\n\n```\n`other_name`\n```\n`kpybroker.no.key`\n"
        "`OneThing.method`, `m.one_function()`, `core.m`, `m.py` exist\n"
        "`OneThing.gone`\n`m.gone()`\n`core.m.gone`\n`thing.gone`\n"
    )
    (tmp_path / "docs" / "page.md").write_text(text)
    (tmp_path / "docs" / "decisions" / "note.md").write_text(text)
    found = list(references.findings([tmp_path / "kpybroker", tmp_path / "docs"]))
    assert [one.removeprefix(f"{tmp_path}/docs/").partition(": nothing")[0] for one in found] == [
        "page.md:2: `no_such_name`",
        "page.md:7: `kpybroker.no.key`",
        "page.md:9: `OneThing.gone`",
        "page.md:10: `m.gone()`",
        "page.md:11: `core.m.gone`",
        "page.md:12: `thing.gone`",
    ]
