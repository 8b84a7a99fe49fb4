"""A broker of the demo's own, which keeps nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kpybroker.pipelines.errors import PipelineError

READY = "kpybroker ready at "
STOP_SECONDS_MAX = 30.0


@contextmanager
def broker(command: str, log_file: Path, *options: str) -> Iterator[str]:
    """Start a broker without persistence; yields its address and stops it at the end of the block."""
    with log_file.open("wb") as log:
        try:
            whole = [command, "dev", "--port", "0", "--ephemeral", *options]
            process = subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=log, text=True)
        except OSError as error:
            raise PipelineError(f"Cannot start {command}: {error.strerror}.", "Run make install first.") from None
        try:
            assert process.stdout is not None
            yield _address(process.stdout, log_file)
        finally:
            process.terminate()
            try:
                process.communicate(timeout=STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def _address(output: IO[str], log_file: Path) -> str:
    for line in output:
        if line.startswith(READY):
            return line.removeprefix(READY).split()[0]
    said = log_file.read_text(errors="replace").strip()
    print(said, file=sys.stderr)
    raise PipelineError("The broker did not start.", "See its messages above." if said else "It wrote no messages.")
