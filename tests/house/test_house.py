"""The checks of the house, on small made-up packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house import circles, comments, docstrings, rooms, strings, words


def package(root: Path, **files: str) -> Path:
    """A package `p` of these modules; `a__b` is the module `p/a/b.py`."""
    for name, text in files.items():
        file = root / "p" / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root / "p"


def found_circles(root: Path) -> list[list[str]]:
    return circles.circles(circles.import_graph(root, "p"))


def test_a_circle_counts_whatever_kind_of_import_closes_it(tmp_path: Path) -> None:
    only_for_types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import a\n"
    in_a_function = "def f() -> None:\n    from p.b import x\n"
    package(tmp_path, a=in_a_function, b="from p.sub import c\n", sub__c=only_for_types, d="import p.a\n")
    assert found_circles(tmp_path) == [["p.a", "p.b", "p.sub.c"]]


def test_relative_imports_count_and_a_package_without_circles_has_none(tmp_path: Path) -> None:
    package(tmp_path, a="from . import b\n", b="from .sub.c import x\n", sub__c="", sub__d="from ..a import y\n")
    assert found_circles(tmp_path) == []
    package(tmp_path, sub__c="from .d import z\n")
    assert found_circles(tmp_path) == [["p.a", "p.b", "p.sub.c", "p.sub.d"]]


def test_the_largest_circle_is_first(tmp_path: Path) -> None:
    package(tmp_path, a="import p.b", b="import p.a", c="import p.d", d="import p.e", e="import p.c")
    assert found_circles(tmp_path) == [["p.c", "p.d", "p.e"], ["p.a", "p.b"]]


def test_a_module_named_by_a_string_is_found_unless_its_file_is_allowed(tmp_path: Path) -> None:
    text = "\n".join(
        (
            "import importlib",
            "importlib.import_module('p.x')",
            "importlib.import_module(f'p.{1}')",
            "importlib.import_module('other.p')",
            "__import__('p')",
            "importlib.import_module(name)",
        )
    )
    package(tmp_path, a=text, b=text)
    found = list(strings.named_modules(tmp_path, "p", allowed=["p/b.py"]))
    assert [one.split(": ")[0] for one in found] == ["p/a.py:2", "p/a.py:3", "p/a.py:5"]


def test_a_room_holds_fifteen_modules_besides_its_init(tmp_path: Path) -> None:
    full = {f"full__m{number}": "" for number in range(rooms.MODULES_MAX)}
    crowded = {f"crowded__m{number}": "" for number in range(rooms.MODULES_MAX + 1)}
    root = package(tmp_path, full____init__="", **full, **crowded)
    assert [Path(one.split(":")[0]).name for one in rooms.findings(root)] == ["crowded"]
    assert list(rooms.findings(root, exempt=["crowded"])) == []


DOCUMENTED = '''"""A module."""
class C:
    """Counts what passes."""
    def __init__(self) -> None: ...
    def _hidden(self) -> None: ...
    def seen(self) -> None:
        """Whatever the caller wants to know."""
        def nested() -> None: ...
class _Private:
    def method(self) -> None: ...
'''
UNDOCUMENTED = '''
class Thing:
    """The thing."""
    def do_it(self) -> None: ...
def read_all() -> None:
    """Read all."""
'''


def test_a_docstring_is_missing_where_it_only_repeats_the_name(tmp_path: Path) -> None:
    root = package(tmp_path, good=DOCUMENTED, bad=UNDOCUMENTED)
    names = [one.split(" ", 1)[1] for one in docstrings.missing([root])]
    assert sorted(names) == ["(module)", "Thing", "Thing.do_it", "read_all"]


def test_words_and_long_lines_are_found(tmp_path: Path) -> None:
    bad = "m" + "end"  # this file is checked as well
    package(tmp_path, a=f"# {bad} it\nfine = 'a/{bad}'\n")
    (tmp_path / "doc.md").write_text(f"{'x' * 121}\n| {'x' * 121} |\n```\n{'x' * 121}\n```\n")
    found = [one.rsplit("/", 1)[1] for one in words.findings([tmp_path])]
    assert found[0] == "doc.md:1: 121 characters: at most 120"
    assert len(found) == 2
    assert found[1].startswith("a.py:1: ")


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("# --- reading", "# --- reading"),
        ("# --- reading ----------", "# --- reading"),
        ("# -- reading --", "# --- reading"),
        ("# === reading", "# --- reading"),
        ("# ----------", ""),
        ("# a comment -- with dashes", "# a comment -- with dashes"),
        ("#!/usr/bin/env python", "#!/usr/bin/env python"),
    ],
)
def test_section_comments_have_one_style(tmp_path: Path, comment: str, expected: str) -> None:
    assert comments.restyled(comment) == expected
    file = tmp_path / "a.py"
    file.write_text(f"x = 1\n{comment}\ny = '{comment}'\n")
    assert bool(list(comments.findings([file]))) == (comment != expected)
    comments.fix(file)
    assert file.read_text() == f"x = 1\n{expected}\ny = '{comment}'\n"
