"""What people administer with the console: from the front page in four clicks at most, on three clusters of three
brokers; and the command that a preview names does the same.

`pytest compat_tests/console/administration --all-versions --console-pictures docs/console` writes the guide's pictures.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page

from compat_tests.console.administration import access, brokers, groups, schemas, topics
from compat_tests.console.administration.administrator import Administrator, Task
from compat_tests.console.administration.places import CLUSTERS, OURS, Place
from compat_tests.console.conftest import OpenPage, barriers, console
from compat_tests.console.pictures import saved

pytestmark = pytest.mark.wide

CLICKS_MAX: Final = 4
COMMAND_S_MAX: Final = 120
SHORT: Final = 3
"""Of names that may be in a command by chance, such as a broker's id: only a whole word is one."""
SCREEN: Final[dict[str, Any]] = {"viewport": {"width": 1080, "height": 620}}
TASKS: Final[Mapping[str, Task]] = {
    **topics.TASKS,
    **brokers.TASKS,
    **groups.TASKS,
    **access.TASKS,
    **schemas.TASKS,
}


@contextmanager
def registry(bootstrap: str) -> Iterator[str]:
    """The address of a schema registry on this cluster."""
    command = [sys.executable, "-m", "kpybroker", "registry", "-b", bootstrap, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"ready at (\S+?)/?\s", process.stdout.readline() + "\n")
        try:
            assert found is not None
            yield found[1]
        finally:
            process.kill()


@pytest.fixture(scope="module", params=CLUSTERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A console that may change the cluster, with a schema registry."""
    with ExitStack() as stack:
        bootstrap = stack.enter_context(CLUSTERS[request.param](tmp_path_factory.mktemp("cluster")))
        url = stack.enter_context(registry(bootstrap))
        address = stack.enter_context(console("-b", bootstrap, "--allow-changes", "--schema-registry", url))
        yield Place(request.param, address, bootstrap, url)


def renamed(command: str, name: str, other: str) -> str:
    if len(name) > SHORT:
        return command.replace(name, other)
    return shlex.join(other if word == name else word for word in shlex.split(command))


def run(command: str, password: Path) -> None:
    """As a shell does."""
    text = command.replace("--password-file FILE", f"--password-file {password}")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", text], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=COMMAND_S_MAX
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("name", TASKS)
def test_a_task(
    place: Place,
    open_page: OpenPage,
    axe_source: str,
    name: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    task, directory = TASKS[name], request.config.getoption("--console-pictures")
    found: list[str] = []

    def picture(page: Page) -> None:
        found.extend(barriers(page, axe_source))
        if directory and place.kind == OURS:
            saved(page, Path(directory) / "tasks" / f"{name}.png")

    page = open_page(f"{place.address}/", color_scheme="light", **SCREEN)
    who = Administrator(page, place, picture)
    if place.kind in task.off:
        task.off[place.kind](who, place)
        return
    made = task.make(place)
    task.clicks(who, made)
    print(f"{name} on {place.kind}: {who.clicks} clicks")
    assert who.clicks <= CLICKS_MAX
    assert found == []
    if task.seen is None:
        return
    became = task.seen(place, made)
    other = task.make(place)
    password = tmp_path / "password"
    password.write_text(access.PASSWORD)
    run(renamed(who.command, made, other), password)
    assert task.seen(place, other) == became
