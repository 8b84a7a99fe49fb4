"""`Output`: the rows of a command, as `--format` says.

A row is a dict with all there is to know: programs get it whole, and its keys do not change between versions. A table
shows some of it, in columns; `wide` shows more columns. An action builds rows and columns, and knows no format.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kpybroker.client.connect.errors import CommandError, note
from kpybroker.client.connect.visible import visible_json
from kpybroker.client.show.cells import Column, Row

TABLES: Final = ("table", "wide")


class Output:
    """Prints what a command found, in one format."""

    def __init__(self, format_name: str) -> None:
        self.format = format_name

    @property
    def is_table(self) -> bool:
        """Whether people read it."""
        return self.format in TABLES

    @property
    def is_detailed(self) -> bool:
        """Whether rows need what only `wide`, JSON and YAML show."""
        return self.format != "table"

    def data(self, value: Any) -> None:
        """The value as JSON or YAML."""
        if self.format == "yaml":
            import yaml

            text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)
        else:
            text = visible_json(json.dumps(value, ensure_ascii=False, indent=2)) + "\n"
        write(text)

    def rows(self, rows: Sequence[Row], columns: Sequence[Column], *, empty: str = "") -> None:
        """A list of rows; `empty` is said on standard error when a table would have none."""
        if not self.is_table:
            self.data([dict(row) for row in rows])
        elif rows:
            self.table(rows, columns)
        elif empty:
            note(empty)

    def table(self, rows: Iterable[Row], columns: Sequence[Column]) -> None:
        """Rows as a table; for tables only."""
        write(self.text(rows, columns))

    def sections(self, parts: Iterable[str]) -> None:
        """Texts with an empty line between them, for tables; those without a text are left out."""
        write("\n".join(text for text in parts if text))

    def heading(self, title: str) -> str:
        """A line above a table, for `sections`."""
        from kpybroker.client.show.tables import heading

        return heading(title)

    def text(self, rows: Iterable[Row], columns: Sequence[Column]) -> str:
        """What `table` prints, for `sections`."""
        from kpybroker.client.show.tables import table

        is_wide = self.format == "wide"
        return table(rows, [column for column in columns if is_wide or not column.wide], fold=not is_wide)

    def pairs(self, pairs: Iterable[tuple[str, Any]]) -> str:
        """Names and values below each other, for `sections`."""
        from kpybroker.client.show.tables import pairs as drawn

        return drawn(pairs)


def write(text: str) -> None:
    """To standard output, in UTF-8 whatever the locale is. Raises CommandError, and BrokenPipeError."""
    with writing():
        sys.stdout.flush()
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None:  # a test's
            sys.stdout.write(text)
            return
        buffer.write(text.encode(errors="backslashreplace"))
        buffer.flush()


@contextmanager
def writing() -> Iterator[None]:
    """What is written within goes to standard output. Raises CommandError, and BrokenPipeError."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(
            f"standard output cannot be written: {error.strerror or error}", "make room, or write elsewhere"
        ) from None
