"""A command of the command line, run in this process: its exit code, and what it wrote."""

from __future__ import annotations

import io
import json
import sys
from typing import Any, NamedTuple

import click
import pytest

from kpybroker.cli import main as command_line
from tests.support.loggers import kept_logging


class Result(NamedTuple):
    """How a command ended. `out` is bytes: records need not be text."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def table(self) -> list[dict[str, str]]:
        """The rows of a table without empty lines, whose cells have no spaces."""
        head, *rows = (line.split() for line in self.lines)
        return [dict(zip(head, row, strict=True)) for row in rows]


def invoke(monkeypatch: pytest.MonkeyPatch, *arguments: str, stdin: bytes = b"") -> Result:
    """Run `kpybroker ARGUMENTS`."""
    out, err = io.BytesIO(), io.BytesIO()
    with monkeypatch.context() as patched, kept_logging():
        for name, buffer in (("stdin", io.BytesIO(stdin)), ("stdout", out), ("stderr", err)):
            patched.setattr(sys, name, io.TextIOWrapper(buffer, encoding="utf-8", write_through=True))
        patched.setattr(sys, "argv", ["kpybroker", *arguments])
        try:
            command_line.cli(list(arguments), prog_name="kpybroker", standalone_mode=False)
            code: Any = 0
        except SystemExit as ended:
            code = ended.code
        except click.ClickException as error:
            code = error.exit_code
            err.write(error.format_message().encode())
        sys.stdout.flush()
        return Result(int(code or 0), out.getvalue(), err.getvalue().decode())
