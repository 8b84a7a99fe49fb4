"""Schemas of a registry that keeps the text of .proto files only: protoc makes descriptors of them.

protoc is the one of `grpcio-tools`, Google's own. It runs as a process of its own for one schema, in an empty
directory, because the text is anyone's: what it does to the compiler does nothing to the console.
"""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

from kpybroker.client.connect.errors import CommandError

COMPILER: Final = "grpc_tools"
TEXT_BYTES_MAX: Final = 256 * 1024
"""Of a schema together with all that it refers to."""
COMPILE_S_MAX: Final = 3.0
MAIN: Final = "kpybroker-schema.proto"
NAME: Final = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)*", re.ASCII)
"""Of a file that another imports: a path that stays within its directory."""


class NotCompiled(CommandError):
    """Of this schema there are no descriptors."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause, "show the message as hex")


def is_here() -> bool:
    """Whether the compiler is installed."""
    return find_spec(COMPILER) is not None


def is_text(text: str) -> bool:
    """Whether this is no descriptor as a registry writes it."""
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return True
    return not text


def compiled(text: str, references: Mapping[str, str]) -> dict[str, str]:
    """By name the descriptors of a schema's files in base64, each after those that it imports, its own last.

    `references` are the texts of files by the names under which they are imported. Raises NotCompiled.
    """
    files = {**references, MAIN: text}
    if sum(len(text) for text in files.values()) > TEXT_BYTES_MAX:
        raise NotCompiled(f"more than {TEXT_BYTES_MAX} characters of Protobuf are not compiled")
    with tempfile.TemporaryDirectory(prefix="kpybroker-proto-") as directory:
        for name, text in files.items():
            _write(Path(directory), name, text)
        return _run(Path(directory))


def _write(directory: Path, name: str, text: str) -> None:
    if not NAME.fullmatch(name):
        raise NotCompiled(f"the registry's schema refers to {name[:100]!r}, which is no path")
    file = directory / name
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise NotCompiled(f"{name[:100]} cannot be written: {error.strerror}") from None


def _run(directory: Path) -> dict[str, str]:
    out = directory / "descriptors"
    command = [sys.executable, "-I", "-m", "grpc_tools.protoc", f"-I{directory}", f"--descriptor_set_out={out}"]
    try:
        done = subprocess.run(
            [*command, "--include_imports", MAIN],  # it finds google/protobuf/timestamp.proto and the like by itself
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COMPILE_S_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise NotCompiled(f"protoc does not compile the schema within {COMPILE_S_MAX:g} seconds") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise NotCompiled(f"protoc refuses the registry's schema: {said[-1][:200]}")
    try:
        found = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    except (OSError, DecodeError):
        raise NotCompiled("protoc made no descriptors of the registry's schema") from None
    return {file.name: base64.b64encode(file.SerializeToString()).decode() for file in found.file}
