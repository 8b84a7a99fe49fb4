"""The forms in which JmxTool prints values, without a difference: names unescaped, values as they are.

`original` is a header and a line for each time; the others print a line for each value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

TIME: Final = "time"
ORIGINAL: Final = "original"
LINES: Final = {"properties": "{}={}\n", "csv": '{},"{}"\n', "tsv": "{}\t{}\n"}
FORMATS: Final = (ORIGINAL, *LINES)


def in_order(keys: Sequence[str]) -> list[str]:
    """As Java orders texts: by their UTF-16 units."""
    return sorted(set(keys), key=lambda key: key.encode("utf-16-be", "surrogatepass"))


def header(form: str, keys: Sequence[str]) -> str:
    """What is printed once, for the values of these keys."""
    return ",".join(f'"{key}"' for key in (TIME, *keys)) + "\n" if form == ORIGINAL else ""


def row(form: str, time: str, keys: Sequence[str], values: Mapping[str, str]) -> str:
    """What is printed each time. A value that is not there is empty."""
    cells = [(TIME, time), *((key, values.get(key, "")) for key in keys)]
    if form == ORIGINAL:
        return ",".join(cell for _, cell in cells) + "\n"
    return "".join(LINES[form].format(key, cell) for key, cell in cells)
