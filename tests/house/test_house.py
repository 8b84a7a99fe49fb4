"""The checks of the house, on small made-up packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house import comments, docstrings, names, references, rooms, sizes, words
from tests.house.until_fixed import remaining


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


def function(lines: int, parameters: str = "", decorator: str = "", name: str = "f") -> str:
    """A function of so many lines."""
    return f"{decorator}def {name}({parameters}) -> None:\n" + "    pass\n" * (lines - 1)


def test_long_functions_and_files_are_found(tmp_path: Path) -> None:
    inner = "".join(f"    {line}\n" for line in function(sizes.FUNCTION_LINES_MAX + 1, name="g").splitlines())
    root = package(
        tmp_path,
        short=function(sizes.FUNCTION_LINES_MAX, decorator="@cache\n"),
        long=f"class C:\n{inner}",
        full="\n" * sizes.FILE_LINES_MAX,
        longer="\n" * (sizes.FILE_LINES_MAX + 1),
        messages__m="\n" * (sizes.FILE_LINES_MAX + 1),
    )
    assert [one.removeprefix(f"{root}/") for one in sizes.findings([root])] == [
        "long.py:2: C.g: more than 60 lines",
        "longer.py: more than 500 lines",
    ]


@pytest.mark.parametrize(
    ("parameters", "decorator", "is_wide"),
    [
        ("a, b, c, d, e, f", "", False),
        ("self, a, b, c, d, e, f", "", False),
        ("cls, a, /, b, c, *args, d, e, f, **more", "", False),
        ("a, b, c, d, e, f, g", "", True),
        ("a, /, b, c, d, *, e, f, g=1", "", True),
        ("self, a, b, c, d, e, f, g", "@property\n", True),
        ("a, b, c, d, e, f, g", '@click.command(help="x")\n@click.option("--g")\n', False),
        ("a, b, c, d, e, f, g", "@metrics.command()\n", False),
        ("a, b, c, d, e, f, g", "@click.group\n", False),
    ],
)
def test_a_signature_has_six_parameters_but_for_commands(
    tmp_path: Path, parameters: str, decorator: str, is_wide: bool
) -> None:
    root = package(tmp_path, m=function(3, parameters, decorator))
    line = 1 + decorator.count("\n")
    expected = [f"{root}/m.py:{line}: f: more than 6 parameters"] if is_wide else []
    assert list(sizes.wide_signatures([root])) == expected


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
    (tmp_path / "kpybroker").mkdir()
    (tmp_path / "docs" / "decisions").mkdir(parents=True)
    text = "A `group.protocol` and\n`no_such_name`.\n\n```\n`other_name`\n```\n`kpybroker.no.key`\n"
    (tmp_path / "docs" / "page.md").write_text(text)
    (tmp_path / "docs" / "decisions" / "note.md").write_text(text)
    found = list(references.findings([tmp_path / "kpybroker", tmp_path / "docs"]))
    assert [one.removeprefix(f"{tmp_path}/docs/").partition(": nothing")[0] for one in found] == [
        "page.md:2: `no_such_name`",
        "page.md:7: `kpybroker.no.key`",
    ]


def test_what_is_known_is_left_out_until_it_is_fixed(tmp_path: Path) -> None:
    found = [f"{tmp_path}/a.py:7: f: more than 60 lines", f"{tmp_path}/b.py: more than 500 lines"]
    assert remaining(found, tmp_path, ["a.py: f: more than 60 lines"]) == found[1:]
    assert remaining(found, tmp_path, ["a.py: f: more than 60 lines", "b.py: more than 500 lines"]) == []
    (left,) = remaining([], tmp_path, ["a.py: f: more than 60 lines"])
    assert left.startswith("a.py: f: more than 60 lines: is fixed")


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
