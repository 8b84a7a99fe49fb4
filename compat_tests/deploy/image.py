"""Carries out a Dockerfile in fresh root file systems: its instructions in order, each stage in a root of its own.

Whatever the image of `FROM` is, the stage begins with Debian's Python. Only what docs/deploy/Dockerfile uses is
understood, and anything else fails: an instruction that is skipped would be one that is not tested.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from dockerfile_parse import DockerfileParser

from compat_tests.deploy import rootfs
from compat_tests.packaging.pythons import ROOT

DOCKERFILE = ROOT / "docs" / "deploy" / "Dockerfile"


@dataclass(slots=True)
class Image:
    """What a Dockerfile says of its last stage, and where that stage's files are."""

    root: Path
    variables: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    directory: str = "/"
    volumes: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    stop_signal: str = "SIGTERM"
    health: Sequence[str] = ()
    command: Sequence[str] = ()


def build(place: Path, context: Path = ROOT) -> Image:
    """The image of docs/deploy/Dockerfile, built below `place`."""
    stages: dict[str, Image] = {}
    image: Image | None = None
    for instruction, value in _instructions():
        if instruction == "FROM":
            name = value.partition(" AS ")[2] or "last"
            image = stages[name] = Image(rootfs.copy(place / name))
        else:
            assert image is not None, "FROM is the first instruction"
            _carry_out(instruction, value, image, stages, context)
    return stages["last"]


def _instructions() -> Iterator[tuple[str, str]]:
    with DOCKERFILE.open("rb") as file:
        for one in DockerfileParser(fileobj=cast("IO[bytes]", file)).structure:
            if one["instruction"] != "COMMENT":
                yield one["instruction"], one["value"]


def _carry_out(instruction: str, value: str, image: Image, stages: dict[str, Image], context: Path) -> None:
    match instruction:
        case "COPY":
            _copy(value, image, stages, context)
        case "RUN":
            rootfs.run_in(image.root, value, image.variables)
        case "ENV":
            image.variables |= dict(pair.split("=", 1) for pair in shlex.split(value))
        case "USER":
            image.user = value
        case "WORKDIR":
            image.directory = value
        case "VOLUME":
            image.volumes.append(value)
        case "EXPOSE":
            image.ports.append(int(value))
        case "STOPSIGNAL":
            image.stop_signal = value
        case "HEALTHCHECK":
            image.health = json.loads(value.partition(" CMD ")[2])
        case "CMD":
            image.command = json.loads(value)
        case _:
            raise AssertionError(f"{instruction} is not understood here")


def _copy(value: str, image: Image, stages: dict[str, Image], context: Path) -> None:
    source, target = value.split()[-2:]
    place = image.root / target.removeprefix("/")
    if (stage := re.match(r"--from=(\w+) ", value)) is not None:
        shutil.copytree(stages[stage[1]].root / source.removeprefix("/"), place, symlinks=True)
    else:
        assert source == "."
        for name in context_files(context):
            _copy_any(context / name, place / name)


def context_files(context: Path) -> list[str]:
    """What .dockerignore lets into the build: it refuses everything, then names what is wanted."""
    lines = [line for line in (context / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    wanted = [line.removeprefix("!") for line in lines if line.startswith("!")]
    assert [line for line in lines if not line.startswith("!")] == ["*", "**/__pycache__"]
    return wanted


def _copy_any(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copyfile(source, target)
