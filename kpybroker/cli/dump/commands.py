"""What `kpybroker log dump` and `kpybroker log verify` do; each returns its exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence

from kpybroker.cli.dump.format import as_json, finding_line, finding_row, summary_line, summary_row, table
from kpybroker.cli.exit_codes import EXIT_CONFIG, EXIT_OK, fail
from kpybroker.storage.disk.files import Files
from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.inspection.dump import NotALogError, check_path, dump
from kpybroker.storage.inspection.dump_segment import Row, Selection
from kpybroker.storage.inspection.verify import ERROR, Totals, verify

EXIT_FINDINGS = 1


def run_dump(
    paths: Sequence[str], records: bool, offset: int, max_batches: int | None, decoder: str, output: str
) -> int:
    """Print what the files contain; EXIT_FINDINGS if any of it is damaged."""
    files = local_files()
    found = _checked(files, paths)
    damaged = 0

    def rows() -> Iterator[Row]:
        nonlocal damaged
        for path in found:
            for row in dump(files, path, Selection(records, offset, max_batches, decoder)):
                damaged += row["type"] == "error" or (row["type"] == "batch" and not row["isValid"])
                yield row

    _print(map(as_json, rows()) if output == "json" else table(rows()))
    return EXIT_FINDINGS if damaged else EXIT_OK


def run_verify(paths: Sequence[str], shallow: bool, output: str) -> int:
    """Check the files and print the findings with a summary for each path; EXIT_FINDINGS if there is an error."""
    files = local_files()
    error_count = 0
    for path in _checked(files, paths):
        totals = Totals()
        errors = notes = 0
        for finding in verify(files, path, totals, is_deep=not shallow):
            errors += finding.severity == ERROR
            notes += finding.severity != ERROR
            _print([as_json(finding_row(finding)) if output == "json" else finding_line(finding)])
        summary = summary_row(path, totals, errors, notes)
        _print([as_json(summary) if output == "json" else summary_line(summary)])
        error_count += errors
    return EXIT_FINDINGS if error_count else EXIT_OK


def _checked(files: Files, paths: Sequence[str]) -> list[str]:
    """Absolute paths. One that cannot be used ends the command before it prints anything.

    What is named may be a symbolic link; below it none is followed, as in a broker.
    """
    found = [os.path.realpath(path).replace(os.sep, "/") for path in paths]
    for path in found:
        try:
            check_path(files, path)
        except NotALogError as error:
            fail(str(error), "name a file of a log, a partition's directory or a log directory", EXIT_CONFIG)
        except OSError as error:
            fail(
                f"{path} cannot be read: {error.strerror}",
                "name a file that this user may read, and no pipe",
                EXIT_CONFIG,
            )
    return found


def _print(lines: Iterable[str]) -> None:
    """To standard output; a reader that goes away (`| head`) ends the process as it ends other tools."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for line in lines:
        sys.stdout.write(line + "\n")
