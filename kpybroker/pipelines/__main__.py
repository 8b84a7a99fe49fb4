"""`python -m kpybroker.pipelines`: `run NAME` runs one, `demo NAME` shows it.

Exit codes: 0 done, 1 failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from kpybroker.pipelines.catalogue import DEMOS, PIPELINES, find
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.messages import Messages
from kpybroker.pipelines.runtime.options import Options, check_reachable, parse, result_topic
from kpybroker.pipelines.runtime.pipeline import Pipeline
from kpybroker.pipelines.runtime.progress import Report
from kpybroker.pipelines.runtime.run import run
from kpybroker.pipelines.runtime.session import open_spark

USAGE = f"""usage: python -m kpybroker.pipelines run NAME [options]
       python -m kpybroker.pipelines demo NAME [options]
       python -m kpybroker.pipelines list

NAME is one of {", ".join(PIPELINES)}; `run NAME --help` and `demo NAME --help` explain the options."""


def _summary(chosen: Pipeline[Any], options: Options[Any], report: Report) -> list[str]:
    lines = [f"{report.read} records read, {report.broken} of them broken"]
    for result in chosen.results:
        places = [f"topic {result_topic(prefix, result)}" for prefix in options.prefixes]
        places += [f"{directory}/{result}" for directory in options.directories]
        places += [f"table {result}" for _ in options.databases]
        lines.append(f"{result}: {report.rows[result]} rows to {' and '.join(places)}")
    return lines


def _stop_signals() -> Callable[[], bool]:
    """Install handlers; the result says whether SIGINT or SIGTERM was received. A second signal ends the process.

    A flag, not an exception, which would break a call to the JVM. Call it after Spark's start, which installs a SIGINT
    handler of its own.
    """
    received: list[int] = []

    def note(number: int, _frame: object) -> None:
        received.append(number)
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_DFL)

    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, note)
    return lambda: bool(received)


def _run(name: str, arguments: Sequence[str]) -> None:
    chosen = find(PIPELINES, name)
    options = parse(chosen, arguments)
    check_reachable(options.bootstrap_servers)
    messages = Messages(sys.stderr)
    spark = open_spark(options.master, options.jars, options.packages, messages)
    try:
        report = run(spark, chosen, options, lambda line: print(line, flush=True), _stop_signals())
    except PipelineError as error:
        if error.is_unknown:
            print(messages.text(), file=sys.stderr)
        raise
    finally:
        with suppress(OSError):  # of a JVM that is gone
            spark.stop()
    print("\n".join(_summary(chosen, options, report)))


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; the exit code."""
    try:
        match list(arguments):
            case ["run", name, *more] if not name.startswith("-"):
                _run(name, more)
            case ["demo", name, *more] if not name.startswith("-"):
                # SIGTERM must not leave the broker and Spark behind
                signal.signal(signal.SIGTERM, signal.default_int_handler)
                find(DEMOS, name)(more)
            case ["list"]:
                print("\n".join(f"{name}  {one.summary}" for name, one in PIPELINES.items()))
            case ["--help" | "-h" | "help"]:
                print(USAGE)
            case _:
                print(USAGE, file=sys.stderr)
                return 2
    except PipelineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
