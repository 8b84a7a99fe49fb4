"""Prints the share of a target's lines that a folder of inputs reaches.

python -m tests.fuzz.reached TARGET FOLDER
"""

from __future__ import annotations

import dis
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tests.fuzz.targets import every


def lines_of(code: CodeType) -> Iterator[tuple[str, int]]:
    """File and number of every line of the functions in it: those of modules and classes run at the import."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & 0x2:  # CO_NEWLOCALS: a function, not the body of a class
                first = constant.co_firstlineno
                for _, line in dis.findlinestarts(constant):
                    if line is not None and line > first:
                        yield constant.co_filename, line
            yield from lines_of(constant)


def main() -> None:
    name, folder = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    target = every()[name]
    modules = [module for one, module in list(sys.modules.items()) if one.startswith(target.modules)]
    files = {file for module in modules if (file := module.__file__) is not None}
    every_line = {
        line for file in files for line in lines_of(compile(Path(file).read_text(encoding="utf-8"), file, "exec"))
    }
    seen: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    inputs = [one.read_bytes() for one in sorted(Path(folder).iterdir())]
    sys.settrace(trace)
    for data in inputs:
        target.once(data)
    sys.settrace(None)
    print(len(seen & every_line) / len(every_line))


if __name__ == "__main__":
    main()
