"""Fuzzes one target with atheris (libFuzzer), guided by the coverage of `kpybroker`; `run` starts it.

    python -m tests.fuzz.child TARGET CORPUS... -runs=100000

An input that the target neither takes nor refuses is kept, and ends the process with its traceback.
"""

from __future__ import annotations

import logging
import sys

import atheris

from tests.fuzz.played import keep


def main() -> None:
    name, *options = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    with atheris.instrument_imports(include=["kpybroker"]):
        from tests.fuzz.targets import every

        target = every()[name]

    def once(data: bytes) -> None:
        try:
            target.once(data)
        except Exception:
            keep(name, data)
            raise

    atheris.Setup([sys.argv[0], *options], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
