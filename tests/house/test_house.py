"""The checks of the house, on small made-up packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house import comments, docstrings, rooms, users, words


def package(root: Path, **files: str) -> Path:
    """A package `p` of these modules; `a__b` is the module ``p/a/b.py``."""
    for name, text in files.items():
        file = root / "p" / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root / "p"


def test_a_room_holds_fifteen_modules_and_its_init(tmp_path: Path) -> None:
    full = {f"full__m{number}": "" for number in range(rooms.MODULES_MAX)}
    crowded = {f"crowded__m{number}": "" for number in range(rooms.MODULES_MAX + 1)}
    root = package(tmp_path, full____init__="", full__conftest="", **full, **crowded)
    assert [Path(one.split(":")[0]).name for one in rooms.findings([root])] == ["crowded"]
    (root / "crowded").rename(root / "messages")
    assert list(rooms.findings([root])) == []


IMPORTS = {
    "cli__main": "def run() -> None:\n    from p.control.hosted import Hosted\n    from p.core import shared",
    "core__shared": "import p.core.below",
    "core__below": "",
    "control__hosted": "from p.core.rules import parse\nfrom p.core.shared import x",
    "core__rules__parse": "from p.core.rules.acts import y",
    "core__rules__acts": "",
    "testing__api": "",
    "metrics__absent": "from p.metrics.why import z",
    "metrics__why": "",
    "wire__messages__generated": "",
}


def test_what_only_the_test_kit_or_no_one_uses_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = package(tmp_path, **IMPORTS)
    (root / "__main__.py").write_text("from p.cli import main")
    (root / "testing" / "__init__.py").write_text("from p.testing import api")

    def found() -> list[tuple[str, str]]:
        lines = (one.removeprefix(f"{root}/").split(": ") for one in users.findings([root]))
        return [(line[0], line[1].split(" ", 1)[0]) for line in lines]

    unused = [("metrics/absent.py", "nothing"), ("metrics/why.py", "nothing")]
    assert found() == [("core/rules/acts.py", "only"), ("core/rules/parse.py", "only"), *unused]
    monkeypatch.setattr(users, "FOR_KIT", frozenset(("core.rules.parse", "core.rules.acts", "core.below")))
    assert found() == [("core/below.py", "others"), *unused]


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
    names = [one.split(" ", 1)[1] for one in docstrings.findings([root])]
    assert sorted(names) == ["(module)", "Thing", "Thing.do_it", "read_all"]


def test_words_and_long_lines_are_found(tmp_path: Path) -> None:
    bad = "m" + "end"  # this file is checked as well
    package(tmp_path, a=f"# {bad} it\nfine = 'a/{bad}'\nre{bad} = to_{bad} = 1\n")
    (tmp_path / "doc.md").write_text(f"{'x' * 121}\n| {'x' * 121} |\n```\n{'x' * 121}\n```\n")
    found = [one.rsplit("/", 1)[1] for one in words.findings([tmp_path])]
    assert found[0] == "doc.md:1: 121 characters: at most 120"
    assert len(found) == 3
    assert found[1].startswith("a.py:1: ")
    assert found[2].startswith("a.py:3: ")


def test_a_response_has_no_other_name_but_in_the_test_kit(tmp_path: Path) -> None:
    good = 'faults.never_answer(); call("answer_predicate"); NeverAnswer, ANSWERED = kit, "answered"\n'
    bad = 'AnswerNow = 1\nx = "unanswered"\nnever_answer(answers)\n'
    package(tmp_path, a=good + bad)
    (tmp_path / "Filter.java").write_text("// one command a line in,\n// one answer a line out\n")
    (tmp_path / "page.md").write_text("It is answered.\n```\nFetch answered\n```\nIt responds.\n")
    found = [one.removeprefix(f"{tmp_path}/").split(": ")[0] for one in words.other_responses([tmp_path])]
    assert found == ["Filter.java:2", "p/a.py:2", "p/a.py:3", "p/a.py:4", "page.md:1"]


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
    assert bool(list(comments.findings([tmp_path]))) == (comment != expected)
