"""The input of the demo: the files of a log, their format, and their lines."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kpybroker.pipelines.activity.formats import guess
from kpybroker.pipelines.errors import PipelineError

SAMPLE_LINES = 200


@dataclass(frozen=True, slots=True)
class Log:
    """The files to read, oldest first, with their format and number of lines."""

    files: tuple[Path, ...]
    format: str
    lines: int

    @property
    def description(self) -> str:
        """The files, in a few words for the user."""
        return str(self.files[0]) if len(self.files) == 1 else f"{len(self.files)} files, from {self.files[0]} on"

    def read(self) -> Iterator[str]:
        """The lines of all files."""
        return itertools.chain.from_iterable(map(read_lines, self.files))


def read_lines(file: Path) -> Iterator[str]:
    """The lines of a file, plain or gzipped, without empty lines; bytes that are not UTF-8 are replaced."""
    opener = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rt", encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if text := line.rstrip("\r\n"):
                yield text


def _files(path: Path) -> list[Path]:
    """The file, or the folder's files from the oldest to the newest (a rotated log in its order)."""
    if path.is_dir():
        return sorted((one for one in path.iterdir() if one.is_file()), key=lambda one: (one.stat().st_mtime, one.name))
    return [path] if path.exists() else []


def _looks(file: Path) -> str | None:
    return guess(itertools.islice(read_lines(file), SAMPLE_LINES))


def _formats(files: list[Path]) -> dict[Path, str | None]:
    """The format of each file; of several files, those that cannot be read are left out."""
    if len(files) == 1:
        return {files[0]: _looks(files[0])}
    found: dict[Path, str | None] = {}
    for file in files:
        try:
            found[file] = _looks(file)
        except (OSError, EOFError):
            continue
    return found


def _commonest(formats: dict[Path, str | None]) -> str | None:
    """The format of the most bytes."""
    sizes: dict[str, int] = {}
    for file, found in formats.items():
        if found is not None:
            sizes[found] = sizes.get(found, 0) + file.stat().st_size
    return max(sizes, key=lambda one: sizes[one], default=None)


def open_log(path: Path, format_name: str | None) -> Log:
    """The log at `path`; PipelineError when it is missing, empty, or of an unknown format.

    From a folder, the files of one format are used: `format_name`, or the format of the most bytes. The format of a
    single file is not checked against `format_name`.
    """
    try:
        cause, log = _judge(path, format_name)
    except (OSError, EOFError) as error:
        cause, log = f"cannot be read: {error}", None
    if log is None:
        raise PipelineError(f"The log {path} {cause}.", "Name a file or a folder: make demo LOG=/path/to/access.log", 2)
    return log


def _judge(path: Path, format_name: str | None) -> tuple[str, Log | None]:
    """("", the log), or (what is wrong with it, None)."""
    files = _files(path)
    if not files:
        return ("has no files in it" if path.is_dir() else "does not exist"), None
    known_format = len(files) == 1 and format_name is not None
    formats: dict[Path, str | None] = {files[0]: format_name} if known_format else _formats(files)
    wanted = format_name or _commonest(formats)
    taken = tuple(file for file, found in formats.items() if found is not None and found == wanted)
    count = sum(1 for file in taken for _ in read_lines(file))
    if count and wanted is not None:
        return "", Log(taken, wanted, count)
    if all(next(read_lines(file), None) is None for file in formats):
        return "is empty", None
    known = "access log lines, JSON activity events, dpkg.log lines"
    return f"is in none of the known formats ({known})", None
