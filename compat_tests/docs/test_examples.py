"""Each folder in docs/examples, run as a reader runs it: in a copy of its folder, with nothing but the plugin.

Projects have a README, whose commands are run in a fresh environment, from an index: that is for `make compat`.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from compat_tests.docs import projects
from compat_tests.packaging import environments
from tests.support.programs.pytest_runs import pytest_command, pytest_environment

EXAMPLES = projects.EXAMPLES
RUN_S_MAX = 300
RUNS_AT_ONCE = 3
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/test_*.py"))
NEEDED = {"faststream_app": "faststream", "django_shop": "pytest_django"}
"""What is not in this environment: these run in their own only."""
Runs = Mapping[str, Future[subprocess.CompletedProcess[str]]]
HERE = [
    name
    for name in NAMES
    if name != "spark_totals" and not (name in NEEDED and not importlib.util.find_spec(NEEDED[name]))
]


def test_there_are_eight_projects_and_six_subjects() -> None:
    assert len(projects.NAMES) == 8
    assert len(NAMES) == 14


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Of the examples that are tested, some at once: they wait most of the time."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    names = [str(item.callspec.params["name"]) for item in items if item.function is test_its_tests_pass]
    with ThreadPoolExecutor(RUNS_AT_ONCE) as threads:
        yield {name: threads.submit(_run, name, tmp_path_factory.mktemp(name)) for name in names}


def _run(name: str, directory: Path) -> subprocess.CompletedProcess[str]:
    folder = shutil.copytree(EXAMPLES / name, directory / name)
    return subprocess.run(
        pytest_command("-q", others=["asyncio"] if "asyncio_mode" in _settings(folder) else []),
        cwd=folder,
        env=pytest_environment(),
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )


@pytest.mark.parametrize("name", HERE)
def test_its_tests_pass(name: str, runs: Runs) -> None:
    done = runs[name].result()
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d+ passed(, \d+ warnings?)? in ", done.stdout, re.MULTILINE), done.stdout


def _settings(folder: Path) -> str:
    file = folder / "pytest.ini"
    return file.read_text(encoding="utf-8") if file.exists() else ""


@pytest.mark.parametrize("name", projects.NAMES)
def test_a_project_has_all_that_is_copied(name: str) -> None:
    folder = EXAMPLES / name
    assert [words[2] for words in projects.commands(name)] == ["pip", "pytest"]
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for file in re.findall(r"^\| `([^`]+)` \|", readme, re.MULTILINE):
        assert (folder / file).exists(), file
    steps = yaml.safe_load((folder / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    ran = [step["run"] for step in steps["jobs"]["test"]["steps"] if "run" in step]
    assert ran[-2:] == ["python -m pip install ./kpybroker -r requirements.txt", "python -m pytest --ignore=kpybroker"]


@pytest.mark.parametrize("name", projects.NAMES)
def test_the_picture_of_the_report_names_its_tests(name: str) -> None:
    folder = EXAMPLES / name
    tests = {found for file in folder.glob("test_*.py") for found in re.findall(r"def (test_\w+)", file.read_text())}
    lines = (folder / "report.txt").read_text(encoding="utf-8").splitlines()
    assert {line.partition("::")[2].partition(" ")[0] for line in lines if "::" in line} == tests
    assert lines[-1] == f"{len(tests)} passed"
    picture = (folder / "report.svg").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert all(line[:80] in picture for line in lines)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environments.build(tmp_path_factory.mktemp("dist"))[1]


@pytest.mark.wide
@pytest.mark.parametrize("name", projects.NAMES)
def test_its_commands_work_in_a_fresh_environment(name: str, wheel: Path, tmp_path: Path) -> None:
    written = (EXAMPLES / name / "report.txt").read_text(encoding="utf-8").splitlines()
    assert projects.report(name, tmp_path, wheel) == written
