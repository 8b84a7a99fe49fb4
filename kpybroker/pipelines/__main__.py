"""`python -m kpybroker.pipelines`: one command runs the job. Exit codes: 0 done, 1 failed, 2 a wrong argument."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.job import Report, run
from kpybroker.pipelines.options import Options, check_reachable, parse
from kpybroker.pipelines.session import open_spark
from kpybroker.pipelines.sinks import KEYS, Sinks


def _summary(options: Options, report: Report) -> list[str]:
    sinks = Sinks(options, {}, print)
    lines = [f"{report.read} lines read, {report.not_understood} of them not understood as '{options.format}'"]
    for result in KEYS:
        places = [f"topic {options.result_topic(result)}"] if options.to_topics is not None else []
        places += [sinks.directory(result)] if options.to_parquet is not None else []
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


def main(arguments: Sequence[str]) -> int:
    """Run the job of the command line; the exit code."""
    try:
        options = parse(arguments)
        check_reachable(options.bootstrap_servers)
        spark = open_spark(options.master, options.jars, options.packages)
        try:
            report = run(spark, options, lambda line: print(line, flush=True), _stop_signals())
        finally:
            spark.stop()
    except PipelineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print("\n".join(_summary(options, report)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
