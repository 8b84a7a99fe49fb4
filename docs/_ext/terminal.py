"""The picture of the first minute: runs the commands, and draws what they print as a terminal.

    python docs/_ext/terminal.py        # writes docs/start/first-minute.svg and first-minute.txt

It needs kcat, and `kpybroker` importable. Standard library only.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

START = Path(__file__).resolve().parents[1] / "start"
ADDRESS = "127.0.0.1:9092"
WIDTH, LINE_HEIGHT, COLUMNS = 860, 19, 104
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
STEPS = (f"echo hello | kcat -P -b {ADDRESS} -t demo", f"kcat -C -b {ADDRESS} -t demo -e")


def session() -> list[str]:
    """The lines of the terminal; those that a person types begin with `$ `."""
    command = [sys.executable, "-m", "kpybroker", "dev", "--ephemeral"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as broker:
        assert broker.stdout is not None
        lines = ["$ kpybroker dev --ephemeral"]
        for line in broker.stdout:
            if not line.startswith("["):  # the log's lines
                lines.append(line.rstrip())
            if line.strip().startswith("stop"):
                break
        for step in STEPS:
            done = subprocess.run(["bash", "-c", step], capture_output=True, text=True, check=True)
            lines += ["", f"$ {step}", *done.stdout.splitlines(), *done.stderr.splitlines()]
        broker.terminate()
    return lines


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
        colour = "#9ad1a5" if line.startswith("$ ") else "#ffffff" if "ready at" in line else "#c6d0dd"
        text = escape(shown).replace(" ", NO_BREAK_SPACE)  # browsers fold other spaces
        parts.append(f'<text x="18" y="{50 + LINE_HEIGHT * number}" fill="{colour}">{text}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    said = session()
    (START / "first-minute.txt").write_text("\n".join(said) + "\n", encoding="utf-8")
    (START / "first-minute.svg").write_text(drawing(said), encoding="utf-8")
