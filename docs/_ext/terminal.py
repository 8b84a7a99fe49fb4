"""Pictures of terminals: runs commands against a `kpybroker dev`, and draws what they print.

    python docs/_ext/terminal.py [NAME...]   # writes docs/NAME.svg and docs/NAME.txt; all of PICTURES by default

It needs kcat, and `kpybroker` importable as a command. Port 9092 must be free. Standard library only.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
ADDRESS = "127.0.0.1:9092"
WIDTH, LINE_HEIGHT, COLUMNS = 860, 19, 104
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
START = "start/first-minute"
"""The one picture that begins with the broker's own start."""
PICTURES = {
    START: (f"echo hello | kcat -P -b {ADDRESS} -t demo", f"kcat -C -b {ADDRESS} -t demo -e"),
    "guides/command-line": (
        "kpybroker topic create orders --partitions 3 --config retention.ms=86400000",
        r"printf 'k1:first\nk2:second\nk3:third\n' | kpybroker topic produce orders -K:",
        r"kpybroker topic consume orders --exit --format '%p:%o %k=%v\n'",
        "kpybroker topic consume orders --group readers --exit > /dev/null",
        "echo k4:fourth | kpybroker topic produce orders -K:",
        "kpybroker group describe readers",
        "kpybroker group seek readers --to start",
        f"kpybroker doctor {ADDRESS}",
    ),
}
HEAD = re.compile(r"[A-Z][A-Z -]+")


def session(steps: Sequence[str], *, with_start: bool) -> list[str]:
    """The lines of the terminal; those that a person types begin with `$ `."""
    command = [sys.executable, "-m", "kpybroker", "dev", "--ephemeral"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as broker:
        assert broker.stdout is not None
        lines = ["$ kpybroker dev --ephemeral"] if with_start else []
        for line in broker.stdout:
            if with_start and not line.startswith("["):  # the log's lines
                lines.append(line.rstrip())
            if line.strip().startswith("stop"):
                break
        shell = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        for step in steps:
            done = subprocess.run(["bash", "-c", step], capture_output=True, text=True, check=True, env=shell)
            lines += ["", f"$ {step}", *done.stdout.splitlines(), *done.stderr.splitlines()]
        broker.terminate()
    return lines if with_start else lines[1:]


def drawing(lines: Sequence[str]) -> str:
    """The lines as SVG, long ones cut."""
    height = LINE_HEIGHT * len(lines) + 52
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#1d2430"/>',
        *(
            f'<circle cx="{20 + 18 * n}" cy="18" r="5.5" fill="{c}"/>'
            for n, c in enumerate(("#ec6a5e", "#f4bf4f", "#61c554"))
        ),
    ]
    for number, line in enumerate(lines):
        shown = line if len(line) <= COLUMNS else line[: COLUMNS - 1] + "…"
        text = escape(shown).replace(" ", NO_BREAK_SPACE)  # browsers fold other spaces
        parts.append(f'<text x="18" y="{50 + LINE_HEIGHT * number}" fill="{colour(line)}">{text}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def colour(line: str) -> str:
    """Commands green; the ready line and the heads of tables white."""
    if line.startswith("$ "):
        return "#9ad1a5"
    return "#ffffff" if "ready at" in line or HEAD.fullmatch(line) else "#c6d0dd"


if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        said = session(PICTURES[name], with_start=name == START)
        (DOCS / f"{name}.txt").write_text("\n".join(said) + "\n", encoding="utf-8")
        (DOCS / f"{name}.svg").write_text(drawing(said), encoding="utf-8")
