"""A page's commands, in the order of the page, in a fresh environment that has what the page says to install.

The page is followed as it is written: install lines, commands, and the samples that it includes. `kpybroker` is this
checkout, as the pages say while it is on no package index. Only addresses are the test's own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from compat_tests.packaging import environments
from compat_tests.packaging.pythons import ROOT

DOCS: Final = ROOT / "docs"
READY: Final = "kpybroker ready at "
RUN_S_MAX: Final = 600
STEP = re.compile(
    r"`(?:python -m )?(pip install\s[^`]+)`|^ *```\{literalinclude\} (\S+\.(?:sh|py))|^```sh\n(.*?)^```$", re.M | re.S
)


class Page(NamedTuple):
    """How a page is followed. `without` are steps that are left out, each with its reason."""

    name: str
    broker: tuple[str, ...] | None = ("--ephemeral",)
    without: Mapping[str, str] = {}
    before: tuple[str, ...] = ()


def steps(page: Page) -> list[str]:
    """Install lines, commands, and paths of samples, each once and in order; first what must have been before."""
    text = (DOCS / f"{page.name}.md").read_text(encoding="utf-8")
    found: list[str] = list(page.before)
    for install, sample, block in STEP.findall(text):
        if sample:
            found.append(str(((DOCS / page.name).parent / sample).resolve().relative_to(DOCS)))
        for line in [install] if install else block.splitlines():
            command = " ".join(re.sub(r"\s+# .*", "", line).split()).removeprefix("python -m ")
            if command and not command.startswith("#"):
                found.append(command)
    return [step for step in dict.fromkeys(found) if step not in page.without]


class Reader:
    """Someone with an empty environment, a checkout, and a home of their own."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._home = place / "home"
        self._home.mkdir()
        (self._home / "docs").symlink_to(DOCS)
        self._python = environments.create(place / "environment", Path(sys.executable), ["pip"])
        self._places: dict[str, str] = {}
        kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        kept = {key: value for key, value in kept.items() if not key.startswith(("PYTEST", "KPYBROKER"))}
        self._environment = kept | {"HOME": str(self._home), "PATH": f"{self._python.parent}:{kept['PATH']}"}

    def follow(self, page: Page) -> list[str]:
        """Do all steps of a page; what each printed. The broker runs from the first step that is no installation."""
        todo = steps(page)
        installs = [step for step in todo if step.startswith("pip install")]
        printed = [self._run(self._install(step)) for step in installs]
        with self._broker(page.broker):
            printed += [self._do(step) for step in todo if step not in installs]
        return printed

    def _install(self, step: str) -> str:
        """The step with this checkout, also where it names the package and its extras."""
        return re.sub(r"(?<= )('?)(?:kpybroker|\.)(?=\[|'|\s|$)", rf"\1{ROOT}", step)

    @contextmanager
    def _broker(self, options: tuple[str, ...] | None) -> Iterator[None]:
        if options is None:
            yield
            return
        command = [str(self._python.with_name("kpybroker")), "dev", "--port", "0", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self._environment) as process:
            assert process.stdout is not None
            try:
                ready = process.stdout.readline()
                assert ready.startswith(READY), ready
                address, *more = ready.removeprefix(READY).split()
                named = dict(one.split("=", 1) for one in more)
                self._environment["KPYBROKER_BOOTSTRAP_SERVERS"] = address
                self._places = {"127.0.0.1:9092": address}
                if "control" in named:
                    self._places["127.0.0.1:9099"] = named["control"].removeprefix("http://")
                if "registry" in named:
                    self._places["http://127.0.0.1:8081"] = named["registry"].rstrip("/")
                if "zookeeper" in named:
                    self._places["127.0.0.1:2181"] = named["zookeeper"]
                yield
            finally:
                process.terminate()

    def _do(self, step: str) -> str:
        if not step.endswith((".sh", ".py")):
            return self._run(self._here(step))
        folder = self._place / "copies" / Path(step).parent
        if not folder.exists():
            shutil.copytree(DOCS / Path(step).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
        file = folder / Path(step).name
        text = self._here(file.read_text(encoding="utf-8"))
        file.write_text(text, encoding="utf-8")
        program = (
            "bash -euo pipefail" if file.suffix == ".sh" else "python -m pytest" if "def test_" in text else "python"
        )
        return self._run(f"{program} {file.name}", folder)

    def _here(self, text: str) -> str:
        for theirs, ours in self._places.items():
            text = text.replace(theirs, ours)
        return text

    def _run(self, command: str, folder: Path | None = None) -> str:
        done = subprocess.run(
            ["bash", "-c", command if not command.startswith("pip ") else f"python -m {command}"],
            cwd=folder or self._home,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=RUN_S_MAX,
            check=False,
        )
        assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout
