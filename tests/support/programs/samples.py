"""The samples of docs/samples, run as a reader would run them, but against a broker of the test's own.

A sample names the places that a reader has: `127.0.0.1:9092`, `~/.local/share/kpybroker`. They are replaced by the
test's, and nothing else is changed.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from kpybroker.config.interpret import interpret

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "docs" / "samples"
READY = "kpybroker ready at "
DEADLINE_S = 120.0


def module_of(file: Path) -> ModuleType:
    """A Python file of the docs as a module: they are in no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class DevBroker(NamedTuple):
    """A `kpybroker dev` that runs."""

    bootstrap: str
    data: Path
    zookeeper: str = ""


@contextmanager
def dev_broker(data: Path, *arguments: str) -> Iterator[DevBroker]:
    """`kpybroker dev` on a free port with its data in `data`, stopped in order at the end."""
    command = [sys.executable, "-m", "kpybroker", "dev", "--port", "0", "--data-dir", str(data), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(data)) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith(READY), "the broker did not start"
        try:
            address, *fields = ready.removeprefix(READY).split()
            yield DevBroker(address, data, dict(field.split("=", 1) for field in fields).get("zookeeper", ""))
        finally:
            process.terminate()


def environment(home: Path, **more: str) -> dict[str, str]:
    """This process's environment, with this tree's `kpybroker` in it: as a module, and as a command in `home/bin`."""
    bin_directory = home.parent / "bin"
    bin_directory.mkdir(parents=True, exist_ok=True)
    command = bin_directory / "kpybroker"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kpybroker "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{bin_directory}:{os.environ['PATH']}", **more}


def text_of(sample: str, replaced: Mapping[str, str]) -> str:
    """The sample's text with the reader's places replaced by the test's."""
    text = (SAMPLES / sample).read_text(encoding="utf-8")
    for theirs, ours in replaced.items():
        text = text.replace(theirs, ours)
    return text


def run_sample(sample: str, directory: Path, replaced: Mapping[str, str], commands: Path | None = None) -> str:
    """What a sample prints; `commands` is a directory of more commands for its PATH.

    A shell sample ends at its first command that fails, and so does the test.
    """
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / Path(sample).name
    file.write_text(text_of(sample, replaced))
    command = [sys.executable, str(file)] if file.suffix == ".py" else ["bash", "-euo", "pipefail", str(file)]
    env = environment(directory / "data")
    if commands is not None:
        env["PATH"] = f"{commands}:{env['PATH']}"
    done = subprocess.run(
        command,
        cwd=directory,
        env=env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, f"{sample}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def unknown_or_without_effect(properties: Mapping[str, str]) -> list[str]:
    """What the broker would say of keys that are not Kafka's, or that it does not use."""
    return [note.text for note in interpret(properties).notes]
