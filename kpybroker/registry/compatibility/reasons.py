"""How a difference is written: as Confluent's registry does, for clients that show or search the text."""

from __future__ import annotations

from typing import NamedTuple


class Reason(NamedTuple):
    """`kind` is the name of the difference, `path` where it is, `text` what it is, in terms of `%reader`, `%writer`."""

    kind: str
    path: str
    text: str
    more: str = ""

    def written(self, reader: str, writer: str) -> str:
        """With the names of the two schemas: new and old, or the other way round."""
        text = self.text.replace("%reader", f"{reader} schema").replace("%writer", f"{writer} schema")
        more = f", additionalInfo:'{self.more}'" if self.more else ""
        return f"{{errorType:'{self.kind}', description:'{text} (path {self.path or '/'})'{more}}}"
