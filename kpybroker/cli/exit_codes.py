"""How a command ends: its exit code, and what it says when it fails.

The codes are those of `kpybroker dev` and `kpybroker server`. `kpybroker.broker.lifecycle.startup` uses 2 to 7.
"""

from __future__ import annotations

import logging
import sys
from typing import Final, NoReturn

from kpybroker.control.log_formats import EXTRA_FIELDS, is_json

command_log = logging.getLogger("kpybroker")

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_CONFIG: Final = 2

EXIT_CODES: Final = (
    (EXIT_OK, "stopped in order"),
    (EXIT_FAILED, "an unexpected failure: the log has the details"),
    (EXIT_CONFIG, "a bad option, key or value, or an unreadable file"),
    (3, "a log directory cannot be used, or the last one failed"),
    (4, "a log directory is locked by another broker"),
    (5, "an address cannot be bound: the port is taken, or the host is not here"),
    (6, "ZooKeeper is unreachable or refuses, or the embedded tree cannot be opened, read or written"),
    (7, "the log directories belong to another cluster or another broker"),
)
"""128 + n: a second signal n ended the broker at once."""


def help_text() -> str:
    """The codes as the end of a command's `--help`, in click's markup."""
    lines = [f"  {code}  {meaning}" for code, meaning in EXIT_CODES]
    second = "  129, 130, 143  ended at once by a second SIGHUP, SIGINT or SIGTERM"
    return "\n".join(["\b", "Exit codes:", *lines, second, ""])


def fail(cause: str, fix: str, code: int) -> NoReturn:
    """Print the two lines, or log them where the log is JSON, and end the process with `code`."""
    cause, fix = " ".join(cause.split()), " ".join(fix.split())
    if is_json():
        command_log.critical("%s", cause, extra={EXTRA_FIELDS: {"fix": fix, "exitCode": code}})
    else:
        sys.stderr.write(f"kpybroker: {cause}\nfix: {fix}\n")
        sys.stderr.flush()
    raise SystemExit(code)
