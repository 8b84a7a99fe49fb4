"""The wheel: what is in it, what an index shows of it, and that it works in a fresh environment of each Python."""

from __future__ import annotations

import ast
import re
import shutil
import sys
import tarfile
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path
from typing import NamedTuple

import pytest

from compat_tests.packaging import environments, pythons
from compat_tests.packaging.pythons import ROOT

PACKAGE = ROOT / "kpybroker"
SMOKE = Path(__file__).with_name("smoke.py")
DOCUMENTATION = "https://kpybroker.example/"
CLIENT = "confluent-kafka==2.16.1"
SOURCE = f"{DOCUMENTATION}source/"

BROWSERS = ("static", "templates")
"""Folders of the console whose files are no Python."""


class Built(NamedTuple):
    """The distributions, and the wheel's metadata."""

    sdist: Path
    wheel: Path
    metadata: Message

    def files(self) -> set[str]:
        return set(zipfile.ZipFile(self.wheel).namelist())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    sdist, wheel = environments.build(tmp_path_factory.mktemp("dist"))
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Built(sdist, wheel, message_from_string(archive.read(name).decode()))


def test_the_wheel_is_the_package_and_nothing_else(built: Built) -> None:
    ours = {str(file.relative_to(ROOT)) for file in PACKAGE.rglob("*") if file.suffix in (".py", ".typed")}
    files = [file for part in BROWSERS for file in (PACKAGE / "console" / part).rglob("*") if file.is_file()]
    ours |= {str(file.relative_to(ROOT)) for file in files}
    assert len([name for name in ours if "/wire/messages/" in name]) > 80
    packed = {name for name in built.files() if ".dist-info/" not in name}
    assert packed == ours
    assert {"kpybroker/py.typed", "kpybroker/wire/messages/keys.py"} <= packed
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in built.files())


def test_the_source_has_what_its_tests_and_pages_need(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    top = {name.partition("/")[0] for name in names}
    assert {"kpybroker", "protocol_specs", "tests", "compat_tests", "docs", "conftest.py", "Makefile"} <= top
    assert not {name for name in names if "__pycache__" in name or name.startswith((".cache", ".venv", "build"))}


def test_an_index_accepts_and_renders_it(built: Built) -> None:
    out = environments.run([sys.executable, "-m", "twine", "--no-color", "check", "--strict", built.sdist, built.wheel])
    assert out.count("PASSED") == 2, out


def test_every_link_on_an_index_leads_somewhere(built: Built) -> None:
    """The description has absolute addresses only: of pages of the site, and of files of the source."""
    description = built.metadata.get_payload()
    assert isinstance(description, str)
    targets = re.findall(r"\]\(([^)\s]+)\)", description)
    ours = [target for target in targets if target.startswith(DOCUMENTATION)]
    assert len(ours) > 10
    for target in ours:
        assert any(file.is_file() for file in behind(target)), target
    assert [target for target in targets if not target.startswith("https://")] == []
    addresses = dict(line.split(", ") for line in built.metadata.get_all("Project-URL", []))
    assert addresses["Documentation"] == DOCUMENTATION
    assert addresses["Source"] == SOURCE


def behind(target: str) -> list[Path]:
    """The files of the repository that an address on the index may mean."""
    page = target.partition("#")[0]
    if page.startswith(SOURCE):
        return [ROOT / page.removeprefix(SOURCE)]
    name = page.removeprefix(DOCUMENTATION)
    if name.startswith("_images/"):
        return list((ROOT / "docs").rglob(Path(name).name))
    return [ROOT / "docs" / Path(name).with_suffix(".md")]


def test_the_metadata_names_the_pythons_that_are_tested(built: Built) -> None:
    classifiers = built.metadata.get_all("Classifier", [])
    versions = re.findall(r"Python :: (3\.\d+)$", "\n".join(classifiers), re.MULTILINE)
    assert versions == list(pythons.VERSIONS)
    assert built.metadata["Requires-Python"] == f">={versions[0]}"
    assert "Typing :: Typed" in classifiers
    assert [one for one in classifiers if "Operating System" in one] == ["Operating System :: POSIX :: Linux"]


def test_every_package_of_an_extra_is_imported_somewhere() -> None:
    """An extra for users that nothing imports would promise what is not there."""
    modules = {
        "confluent-kafka": "confluent_kafka",
        "googleapis-common-protos": "google",
        "grpcio-tools": "grpc_tools",
        "prometheus-client": "prometheus_client",
        "protobuf": "google",
        "pure-sasl": "puresasl",
        "pyyaml": "yaml",
        "python-jsonpath": "jsonpath",
    }
    named = {node for file in PACKAGE.rglob("*.py") for node in imported(file)}
    for extra in ("security", "tools", "schemas", "console", "registry", "spark"):
        for requirement in environments.dependencies(extra):
            name = re.split(r"[<>=~!\[; ]", requirement)[0]
            assert modules.get(name, name) in named, f"{extra}: {name}"


def imported(file: Path) -> set[str]:
    """Top-level modules that a file imports, or looks for by name (`find_spec`), since another package imports them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "find_spec":
            found |= {str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)}
    return found


@pytest.mark.parametrize(
    "version",
    [pytest.param(one, marks=[] if one == pythons.VERSIONS[-1] else pytest.mark.wide) for one in pythons.VERSIONS],
)
def test_it_works_in_a_fresh_environment(built: Built, version: str, tmp_path: Path) -> None:
    smoke_test([str(built.wheel)], version, tmp_path)


def test_a_requirement_is_fixed_to_its_lower_bound() -> None:
    assert environments.lowest(["a>=1.2,<2", "b-c<4,>=3", "d >= 1"]) == ["a==1.2", "b-c==3", "d==1"]
    with pytest.raises(ValueError, match="e<2 has no lower bound"):
        environments.lowest(["e<2"])


@pytest.mark.wide
def test_it_works_with_the_lowest_versions_of_its_dependencies(built: Built, tmp_path: Path) -> None:
    lowest = environments.lowest(environments.dependencies())
    smoke_test([str(built.wheel), *lowest], pythons.VERSIONS[0], tmp_path)


def smoke_test(requirements: list[str], version: str, place: Path) -> None:
    """Install the requirements and a stock client, then use them from another directory."""
    python = pythons.find(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    fresh = environments.create(place / "venv", python, [*requirements, CLIENT])
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(SMOKE, elsewhere)
    assert f" works on Python {version}." in environments.run([fresh, SMOKE.name], cwd=elsewhere)
