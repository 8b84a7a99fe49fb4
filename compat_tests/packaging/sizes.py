"""What an installation weighs: the wheel, the package, and each extra with all that it brings.

    python -m compat_tests.packaging.sizes     # writes the table of docs/internals/packages.md

The files are those of the distributions of this environment, which `make test` has installed. What one extra shares
with the core counts for the core alone; compiled modules do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from compat_tests.packaging import environments
from compat_tests.packaging.pythons import ROOT

PAGE: Final = ROOT / "docs" / "internals" / "packages.md"
BEGIN: Final = "<!-- written by python -m compat_tests.packaging.sizes: begin -->"
END: Final = "<!-- written by python -m compat_tests.packaging.sizes: end -->"
FOR_CONTRIBUTORS: Final = ("test", "fuzz", "docs", "lint")
MB: Final = 1_000_000


def closure(requirements: list[str]) -> set[str]:
    """The distributions that these requirements install, by name. Raises PackageNotFoundError."""
    found: set[str] = set()
    left = [(Requirement(text), "") for text in requirements]
    seen: set[tuple[str, str]] = set()
    while left:
        requirement, extra = left.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        for asked in ("", *requirement.extras):
            if (name, asked) not in seen:
                seen.add((name, asked))
                found.add(name)
                left += [(Requirement(text), asked) for text in distribution(name).requires or ()]
    return found


def weight(names: set[str]) -> float:
    """The megabytes of their files."""
    places = {place for name in names for place in files_of(name) if place.suffix != ".pyc" and place.is_file()}
    return sum(place.stat().st_size for place in places) / MB


def files_of(name: str) -> Iterator[Path]:
    """The files that a distribution has installed, by its record; without one, as of old, all below its packages."""
    installed = distribution(name)
    if installed.read_text("RECORD") is not None:
        yield from (Path(str(file.locate())) for file in installed.files or ())
        return
    for package_name in (installed.read_text("top_level.txt") or "").split():
        yield from Path(str(installed.locate_file(package_name))).rglob("*")


def package() -> float:
    """The megabytes of the package itself."""
    files = (file for file in (ROOT / "kpybroker").rglob("*") if file.is_file() and file.suffix != ".pyc")
    return sum(file.stat().st_size for file in files) / MB


def extras() -> list[str]:
    """Those for users."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [name for name in project["optional-dependencies"] if name not in FOR_CONTRIBUTORS]


def rows() -> Iterator[tuple[str, int | None, float | None]]:
    """What, how many packages, how many megabytes; None for what is not installed here."""
    core = closure(environments.dependencies())
    yield "kpybroker itself", 1, package()
    yield "its dependencies", len(core), weight(core)
    for extra in extras():
        try:
            more = closure(environments.dependencies(extra)) - core
        except PackageNotFoundError:
            yield f"`{extra}`", None, None
        else:
            yield f"`{extra}`", len(more), weight(more)


def table() -> str:
    """The table of the page."""
    lines = ["| | packages | MB |", "|---|---|---|"]
    for what, packages, megabytes in rows():
        shown = ("", "not installed here") if megabytes is None else (str(packages), f"{megabytes:.1f}")
        lines.append(f"| {what} | {shown[0]} | {shown[1]} |")
    return "\n".join(lines)


def written() -> dict[str, float | None]:
    """The megabytes that the page has, by what."""
    part = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    found = re.findall(r"^\| (\S.*?) \| (\d*) \| (\S.*?) \|$", part, re.MULTILINE)
    return {what: float(megabytes) if packages else None for what, packages, megabytes in found}


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        f"{text.partition(BEGIN)[0]}{BEGIN}\n\n{table()}\n\n{END}{text.partition(END)[2]}", encoding="utf-8"
    )
