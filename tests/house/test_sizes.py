"""What is too long or too wide is found, on small made-up packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house import sizes
from tests.house.test_house import package


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
