"""`compiled`: a .proto file to its descriptor, by Google's own protoc, which grpcio-tools brings as a library.

The files are written to a directory of their own, which is removed. Imports are found among the references, by name,
among the types that come with protoc and googleapis-common-protos (`google/protobuf`, `google/type`), and among
Confluent's (`confluent`).
"""

from __future__ import annotations

import tempfile
import threading
import warnings
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, Final

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas import proto_scan
from kpybroker.registry.schemas.confluent_types import used
from kpybroker.registry.schemas.model import DEPTH_MAX, Texts, depth

ROOT: Final = "schema.proto"
PROTO2: Final = 'syntax = "proto2"; '
"""What a file without the line is; protoc would write a warning to standard error."""
_lock = threading.Lock()
"""The library keeps state of its own."""


def compiled(text: str, references: Texts, name: str = ROOT) -> FileDescriptorSet:
    """All files, the root's the last, with comments. Raises RegistryError 42201 with protoc's message."""
    with tempfile.TemporaryDirectory(prefix="kpybroker-registry-") as directory:
        home = Path(directory) / "in"
        for file, content in {**used([*references.values(), text]), **references, name: text}.items():
            _write(home, file, content)
        paths = [str(home), *_library_paths()]
        with _lock:
            errors = _errors(name, paths)
            if errors:
                raise invalid_schema(errors)
            out = Path(directory) / "out"
            options = ["--include_imports", "--include_source_info", f"--descriptor_set_out={out}"]
            if protoc.main(["protoc", *(f"-I{path}" for path in paths), *options, name]) != 0:
                raise invalid_schema("protoc refuses it")
            return FileDescriptorSet.FromString(out.read_bytes())


def check_name(name: str) -> None:
    """Raises RegistryError 42201 for the name of a reference that is no relative path."""
    path = PurePosixPath(name)
    is_good = name.isprintable() and len(name) < 200 and "\\" not in name and ":" not in name
    if not is_good or path.is_absolute() or ".." in path.parts or path == PurePosixPath("."):
        raise invalid_schema(f"{name[:200]!r} cannot be the name of an import")


def _write(home: Path, name: str, text: str) -> None:
    check_name(name)
    bare = proto_scan.bare(text)
    if depth(bare) > DEPTH_MAX:
        raise invalid_schema(f"it is nested deeper than {DEPTH_MAX} levels")
    file = home / name
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if proto_scan.has_syntax(bare) else f"{PROTO2}{text}", encoding="utf-8")
    except (OSError, UnicodeEncodeError):
        raise invalid_schema(
            f"the import {name[:200]} cannot be used: no file can have its name, or its text"
        ) from None


def _library_paths() -> Iterable[str]:
    yield str(Path(grpc_tools.__file__).parent / "_proto")
    found = find_spec("google.type") if find_spec("google") else None
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        yield str(Path(place).parent.parent)


def _errors(name: str, paths: list[str]) -> str:
    """What protoc says, without writing it to standard error; empty if it accepts the file."""
    library: Any = protoc._protoc_compiler
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library.get_protos(name.encode(), [path.encode() for path in paths])
    except library.ProtocErrors as errors:
        shown = [f"{_text(one.message)} (line {one.line + 1})" for one in errors.errors() if hasattr(one, "message")]
        return "; ".join(shown)[:500] or str(errors)[:500]
    except Exception:  # of a library, for a text that anyone sent
        return "protoc cannot read it"
    return ""


def _text(message: Any) -> str:
    return message.decode(errors="replace") if isinstance(message, bytes) else str(message)
