"""`Findings`: what was looked at and what came out, printed as it is found."""

from __future__ import annotations

import json
import sys
from typing import Any, Final, NamedTuple

import click

from kpybroker.client.connect.errors import hide

OK: Final = "ok"
NOTE: Final = "note"
WARNING: Final = "warning"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"

STYLES: Final[dict[str, dict[str, Any]]] = {
    OK: {"fg": "green"},
    NOTE: {"fg": "cyan"},
    WARNING: {"fg": "yellow", "bold": True},
    FAILED: {"fg": "red", "bold": True},
    SKIPPED: {"dim": True},
}
STATUS_WIDTH: Final = 9
CHECK_WIDTH: Final = 12


class Finding(NamedTuple):
    """One thing that was looked at. `fix` says what to do; it is given for warnings and failures."""

    check: str
    status: str
    text: str
    fix: str | None = None


class Findings:
    """All of them, in order."""

    def __init__(self, format_name: str) -> None:
        self._format = format_name
        self.found: list[Finding] = []

    def add(self, check: str, status: str, text: str, fix: str | None = None) -> None:
        """Keep a finding, and print it if people read."""
        finding = Finding(check, status, hide(" ".join(text.split())), fix and hide(fix))
        self.found.append(finding)
        if self._format in ("table", "wide"):
            self._print(finding)

    def ok(self, check: str, text: str) -> None:
        """It is as it should be."""
        self.add(check, OK, text)

    def failed(self, check: str, text: str, fix: str) -> None:
        """A client cannot work with this."""
        self.add(check, FAILED, text, fix)

    def warning(self, check: str, text: str, fix: str) -> None:
        """Some clients cannot, or not always."""
        self.add(check, WARNING, text, fix)

    def count(self, status: str) -> int:
        """How many findings have this status."""
        return sum(finding.status == status for finding in self.found)

    def finish(self) -> int:
        """Print the end; 1 if anything failed."""
        if self._format in ("json", "yaml"):
            self._data()
        else:
            failed, warnings = self.count(FAILED), self.count(WARNING)
            parts = [counted(count, word) for count, word in ((failed, "failure"), (warnings, "warning")) if count]
            click.echo("\n" + (", ".join(parts) or "nothing is wrong"))
        return int(bool(self.count(FAILED)))

    def _data(self) -> None:
        rows = [finding._asdict() for finding in self.found]
        if self._format == "yaml":
            import yaml

            sys.stdout.write(yaml.safe_dump(rows, sort_keys=False, allow_unicode=True))
        else:
            sys.stdout.write(json.dumps(rows, ensure_ascii=False, indent=2) + "\n")

    def _print(self, finding: Finding) -> None:
        status = click.style(f"{finding.status:<{STATUS_WIDTH}}", **STYLES[finding.status])
        indent = " " * (STATUS_WIDTH + CHECK_WIDTH)
        text = f"{finding.check:<{CHECK_WIDTH}}{finding.text}"
        click.echo(status + _wrapped(text, STATUS_WIDTH, indent))
        if finding.fix:
            click.echo(indent + _wrapped(f"fix: {finding.fix}", len(indent), indent + "     "))


def _wrapped(text: str, first: int, indent: str) -> str:
    """Lines that fit the terminal; the first begins at column `first`. A pipe gets one line."""
    import shutil
    import textwrap

    if not sys.stdout.isatty():
        return text
    width = max(40, shutil.get_terminal_size().columns)
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=" " * first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).lstrip(" ") if lines else text


def counted(count: int, word: str) -> str:
    """`1 broker`, `2 brokers`."""
    return f"{count} {word}{'' if count == 1 else 's'}"
