"""The main job on real input: a broker, a real log written to it with a stock client, the Spark job, its results.

    python -m kpybroker.pipelines.demo                      # this machine's /var/log/dpkg.log
    python -m kpybroker.pipelines.demo --log access.log     # any file or folder; .gz is read too

It stops everything that it starts, and writes to a temporary directory only. With --bootstrap-servers it uses a
running broker and leaves topics named `demo-*` there.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TextIO

from kpybroker.pipelines import demo_log, demo_tables
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.options import FORMAT_NAMES, check_reachable

DEFAULT_LOG = "/var/log/dpkg.log"
READY = "kpybroker ready at "
STOP_SECONDS_MAX = 30.0
SHORT_LIVED_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""JVM options for a short run, most of which is the compilation of Spark itself."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The command line of the demo. `format` None is guessed, `bootstrap_servers` None starts a broker."""

    log: str
    format: str | None
    window: str
    bootstrap_servers: str | None
    kpybroker: str
    jars: str | None


def parse(arguments: Sequence[str]) -> DemoOptions:
    """The options; argparse exits with 2 for a wrong argument."""
    parser = argparse.ArgumentParser(prog="python -m kpybroker.pipelines.demo", description=__doc__.splitlines()[0])
    default_command = Path(sys.executable).with_name("kpybroker")
    parser.add_argument("--log", default=DEFAULT_LOG, metavar="PATH", help="a file or a folder (default: dpkg's log)")
    parser.add_argument("--format", choices=FORMAT_NAMES, help="of the lines (default: guessed)")
    parser.add_argument("--window", default="1 day", help="of the counts (default: 1 day)")
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="use this broker instead of starting one")
    parser.add_argument("--kpybroker", default=str(default_command), metavar="COMMAND", help="the broker to start")
    parser.add_argument("--jars", metavar="DIR", help="Spark's Kafka connector (default: from Maven)")
    return DemoOptions(**vars(parser.parse_args(arguments)))


@contextmanager
def broker(command: str, log_file: Path) -> Iterator[str]:
    """Start a broker without persistence; yields its address and stops it at the end of the block."""
    with log_file.open("wb") as log:
        try:
            process = subprocess.Popen(
                [command, "dev", "--port", "0", "--ephemeral"], stdout=subprocess.PIPE, stderr=log, text=True
            )
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


class Progress:
    """`label: done of total`, on one line of a terminal, or a line for each quarter elsewhere."""

    def __init__(self, label: str, total: int, out: TextIO) -> None:
        self._label, self._total, self._out = label, max(total, 1), out
        self._shown = -1

    def at(self, done: int) -> None:
        """Show that `done` lines are done, if that changes what is shown."""
        percent = done * 100 // self._total
        step = percent if self._out.isatty() else percent // 25
        if step == self._shown:
            return
        self._shown = step
        filled = percent * 30 // 100
        bar = f"{self._label}  [{'#' * filled}{'.' * (30 - filled)}] {percent:3d} %  {done} of {self._total}"
        self._out.write(f"\r{bar}" if self._out.isatty() else f"{bar}\n")
        if self._out.isatty() and done >= self._total:
            self._out.write("\n")
        self._out.flush()


def spark_command(options: DemoOptions, bootstrap: str, log: demo_log.Log, name: str, place: Path) -> list[str]:
    """The command that runs the job."""
    command = [sys.executable, "-m", "kpybroker.pipelines", "--bootstrap-servers", bootstrap]
    command += ["--topic", f"{name}-lines", "--format", log.format, "--window", options.window, "--to-topics", name]
    command += ["--to-parquet", str(place / "results"), "--checkpoint", str(place / "checkpoint")]
    return [*command, "--jars", options.jars] if options.jars else command


def run_spark(command: list[str], place: Path) -> None:
    """Run the job and show its output; the messages of the JVM are shown only if it fails."""
    noise = place / "spark.log"
    with noise.open("wb") as errors:
        java_options = f"{SHORT_LIVED_JVM} {os.environ.get('JDK_JAVA_OPTIONS', '')}".strip()
        env = {**os.environ, "JDK_JAVA_OPTIONS": java_options}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=env)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                print(f"    {line.rstrip()}", flush=True)
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if code != 0:
        lines = noise.read_text(errors="replace").strip().splitlines()
        print("\n".join(lines[-15:]), file=sys.stderr)
        raise PipelineError(f"The Spark job ended with exit code {code}.", "See its last messages above.")


def show(bootstrap: str, options: DemoOptions, place: Path, log: demo_log.Log) -> None:
    """Write the log to the broker, run the job, print the results. `place` is the temporary directory."""
    name = f"demo-{uuid.uuid4().hex[:6]}" if options.bootstrap_servers else "demo"
    start = time.monotonic()
    progress = Progress("  feeding", log.lines, sys.stdout)
    demo_log.feed(bootstrap, f"{name}-lines", log, progress.at)
    print(f"  {log.lines} lines are in the topic {name}-lines after {time.monotonic() - start:.1f} s\n")
    command = spark_command(options, bootstrap, log, name, place)
    print(f"Spark, from topic to topics and Parquet:\n  {shlex.join(command)}", flush=True)
    start = time.monotonic()
    run_spark(command, place)
    print(f"  done after {time.monotonic() - start:.1f} s\n")
    results = {result: demo_tables.read_json(bootstrap, f"{name}-{result}") for result in demo_tables.RESULTS}
    print(demo_tables.tables(results, log.lines), flush=True)


def run(options: DemoOptions) -> None:
    """The whole demo. Raises `PipelineError` for what the user can fix."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        raise PipelineError("confluent-kafka is not installed.", "pip install 'kpybroker[tools]'") from None
    log = demo_log.open_log(Path(options.log), options.format)
    print(f"{log.lines} lines of format '{log.format}' in {log.description}")
    with tempfile.TemporaryDirectory(prefix="kpybroker-demo-") as directory:
        place = Path(directory)
        if options.bootstrap_servers is not None:
            check_reachable(options.bootstrap_servers)
            show(options.bootstrap_servers, options, place, log)
            return
        with broker(options.kpybroker, place / "broker.log") as bootstrap:
            print(f"kpybroker listens at {bootstrap}")
            show(bootstrap, options, place, log)
    print("The broker has stopped; its data is removed.")


def main(arguments: Sequence[str]) -> int:
    """Run the demo of the command line; the exit code, 130 for an interrupt."""
    try:
        run(parse(arguments))
    except PipelineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    # SIGTERM must not leave the broker and Spark behind
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
