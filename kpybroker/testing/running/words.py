"""What the broker's own program reports, in the words of a Python call: `port=` where it says `--port`."""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = (
    (re.compile(r"\(dev: --port N, 0 for a free one\)"), "(port=, 0 for a free one)"),
    (re.compile(r"\(dev: --host\)"), "(host=)"),
    (re.compile(r"--override ([\w.]+)(?:=(\S+))?"), r"config={'\1': ...}"),
    (re.compile(r"--brokers (\d+)"), r"brokers=\1"),
    (re.compile(r"--data-dir '([^']*)'"), r"data_dir='\1'"),
    (re.compile(r"--data-dir\b"), "data_dir="),
    (re.compile(r"--(port|host|brokers|tls|sasl|acl)\b"), r"\1="),
)


def as_python(text: str) -> str:
    """A cause or a fix of the program."""
    for pattern, replacement in _WORDS:
        text = pattern.sub(replacement, text)
    return text
