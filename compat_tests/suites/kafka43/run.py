"""`make kafka-tests`: Kafka 4.3.1's own tests of clusters, over the wire, with a fresh kpybroker for each.

    python -m compat_tests.suites.kafka43.run [--broker kafka] [--served-versions|--as-release] [--write]
        [--methods REGEX] [CLASS ...]

A class of ours in place of Kafka's `RaftClusterInvocationContext` makes the cluster of each `@ClusterTest`; with
`--broker kafka` they run on Kafka's own. CLASS is a part of the names of classes, or has `*` and `?`; without one
all of `classes.txt` run, each in a JVM of its own, one after the other. A test that is known to pass and does not
(`results.py`), fails the run. With `--served-versions` the tests run that ended at a version of an API which kpybroker
does not serve, and see no such version. With `--as-release` the tests run whose reason was written by hand, and the
broker has `kpybroker.kafka.version=4.3`. `--methods` runs some tests of the classes. `--write` writes what those that
ran did to the results and to the page.
Reports stay in `build/kafka-tests/`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from compat_tests.deps import ROOT, jars_dir
from compat_tests.suites.kafka43 import results
from compat_tests.suites.kafka43.brokers import broker_maker
from compat_tests.suites.kafka43.verdicts import Result, Verdict, lost, read, table
from compat_tests.support.tools import LOG4J

HERE = Path(__file__).resolve().parent
REPORTS = ROOT / "build" / "kafka-tests"
CLASS_DEADLINE_S = 7200
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", f"-Dlog4j.configuration=file:{LOG4J}")
HEAP = "-Xmx2g"
"""Kafka's clusters are in the JVM of the tests; and a client that is sent what is not Kafka's protocol, by an address
that one test makes up, takes it for the size of a response, and reserves a gigabyte.
"""
SERVED = "served"
"""The name of results in the versions that kpybroker serves."""
RELEASE = "release"
"""The name of results of a kpybroker that takes the place of a Kafka 4.3."""
ALL = ".*"
JUNIT = "org.junit.platform.console.ConsoleLauncher"
JUNIT_KEYS = {
    "junit.jupiter.extensions.autodetection.enabled": "true",
    "junit.jupiter.execution.timeout.test.method.default": "600 s",
    "junit.jupiter.execution.timeout.testtemplate.method.default": "600 s",
}


class Under(NamedTuple):
    """Where the tests of one run go: the options of their JVM, and where their reports are."""

    options: list[str]
    reports: Path


def class_path(ours: Path) -> str:
    """Our classes come before Kafka's of the same name."""
    return ":".join([str(ours), *(f"{jars_dir(f'{name}-4.3.1')}/*" for name in ("kafka-tests", "kafka", "streams"))])


def compile_ours(broker: str, out: Path) -> None:
    """What `java/` has for the broker, into `out`."""
    tree = HERE / "java" / broker
    sources = [str(path) for path in sorted(tree.rglob("*.java"))]
    subprocess.run(["javac", "-nowarn", "-d", str(out), "-cp", class_path(out), *sources], check=True)
    if (tree / "META-INF").exists():
        shutil.copytree(tree / "META-INF", out / "META-INF")


@contextmanager
def under(broker: str, name: str) -> Iterator[Under]:
    """With brokers of ours for as long as the block lasts; Kafka's tests start their own."""
    with tempfile.TemporaryDirectory() as ours:
        compile_ours(broker, Path(ours))
        options = [*JVM, HEAP, "-cp", class_path(Path(ours))]
        if broker == "kafka":
            yield Under(options, REPORTS / name)
        else:
            with broker_maker() as maker:
                served, release = str(name == SERVED).lower(), "4.3" if name == RELEASE else ""
                ours_only = [f"-Dkpybroker.brokers={maker.port}", f"-Dkpybroker.served.versions={served}"]
                ours_only += [f"-Dkpybroker.kafka.version={release}"]
                yield Under([*options, *ours_only], REPORTS / name)


def run_class(name: str, where: Under, methods: str = ALL) -> list[Result]:
    """One class in a JVM, or the methods of it that match; what it printed stands next to its reports."""
    reports = where.reports / name
    reports.mkdir(parents=True, exist_ok=True)
    for old in reports.glob("*.xml"):
        old.unlink()
    output = ["--disable-banner", "--disable-ansi-colors", "--details=tree", "--reports-dir", str(reports)]
    configuration = [word for key, value in JUNIT_KEYS.items() for word in ("--config", f"{key}={value}")]
    tests = ["-c", name, f"--include-methodname=.*#({methods})"]
    command = ["java", *where.options, JUNIT, "execute", *tests, *output, *configuration]
    with (reports / "output.log").open("wb") as log:
        try:
            subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=CLASS_DEADLINE_S, cwd=reports)
        except subprocess.TimeoutExpired:
            return [Result(f"{name.rpartition('.')[2]}.*", Verdict.FAILED, CLASS_DEADLINE_S, "the class did not end")]
    return [result for report in sorted(reports.glob("*.xml")) for result in read(report.read_text())]


def chosen(patterns: Iterable[str]) -> list[str]:
    """Full names of classes."""
    names = results.CLASSES.read_text().split()
    wanted = [pattern if set(pattern) & set("*?") else f"*{pattern}*" for pattern in patterns]
    return [name for name in names if not wanted or any(fnmatchcase(name.rpartition(".")[2], one) for one in wanted)]


def report(name: str, found: Sequence[Result]) -> None:
    """The class, and each test that does not pass with the first line of why."""
    others = [one for one in found if one.verdict is not Verdict.PASSED]
    print(f"{name}: {len(found) - len(others)} of {len(found)} pass", flush=True)
    for one in others:
        print(f"  {one.name} {one.verdict.value}: {one.cause.splitlines()[0]}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--broker", choices=["kafka", "kpybroker"], default="kpybroker")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--served-versions", dest="again", action="store_const", const=SERVED)
    again.add_argument("--as-release", dest="again", action="store_const", const=RELEASE)
    parser.add_argument("--methods", default=ALL)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("patterns", nargs="*", metavar="CLASS")
    options = parser.parse_args()
    asked = options.again or options.broker
    classes = chosen(options.patterns)
    methods = dict.fromkeys(classes, options.methods)
    if options.again:
        left = results.unserved if options.again == SERVED else results.by_hand
        asked_for = re.compile(options.methods).fullmatch
        methods = {name: "|".join(filter(asked_for, left(name.rpartition(".")[2]))) for name in classes}
        classes = [name for name in classes if methods[name]]
    found: list[Result] = []
    with under(options.broker, asked) as where:
        for name in classes:
            of_class = run_class(name, where, methods[name])
            found += of_class
            report(name, of_class)
            if options.write:
                results.write(asked, name.rpartition(".")[2], of_class, is_whole=options.methods == ALL)
    print("\n".join(table(found)))
    if options.write or options.methods != ALL:
        return 0
    names = [name.rpartition(".")[2] for name in classes]
    missing = lost(results.passes(asked), {one.name: one for one in found}, names)
    for test in missing:
        print(f"passed before, and does not now: {test}")
    return 1 if missing or not found else 0


if __name__ == "__main__":
    sys.exit(main())
