"""`make kafka-tests`: Kafka 4.3.1's own tests of clusters, over the wire, with a fresh kpybroker for each.

    python -m compat_tests.suites.kafka43.run [--write] [PATTERN ...]

A class of ours in place of Kafka's `RaftClusterInvocationContext` makes the cluster of each `@ClusterTest`. A pattern
chooses classes by a part of their name, or by `*` and `?`; without one all of `CLASSES` run, each in a JVM of its own,
one after the other. `expected.txt` names the tests that pass: one of it that does not, fails the run. `--write` puts
the results of the classes that ran into it. Reports stay in `build/kafka-tests/`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from compat_tests.deps import ROOT, jars_dir
from compat_tests.suites.kafka43.brokers import broker_maker
from compat_tests.suites.kafka43.verdicts import Result, Verdict, lost, read, table
from compat_tests.support.tools import LOG4J

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected.txt"
CLASSES = HERE / "classes.txt"
REPORTS = ROOT / "build" / "kafka-tests"
CLASS_DEADLINE_S = 3600
JVM = ("-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", f"-Dlog4j.configuration=file:{LOG4J}")
JUNIT = "org.junit.platform.console.ConsoleLauncher"
JUNIT_KEYS = {
    "junit.jupiter.extensions.autodetection.enabled": "true",
    "junit.jupiter.execution.timeout.testtemplate.method.default": "240 s",
}


def class_path(ours: Path) -> str:
    """Our class comes before Kafka's of the same name."""
    return f"{ours}:{jars_dir('kafka-tests-4.3.1')}/*:{jars_dir('kafka-4.3.1')}/*"


def compile_ours(out: Path) -> None:
    """The sources of `java/`, into `out`."""
    sources = [str(path) for path in sorted((HERE / "java").rglob("*.java"))]
    subprocess.run(["javac", "-nowarn", "-d", str(out), "-cp", class_path(out), *sources], check=True)


def run_class(name: str, ours: Path, port: int) -> list[Result]:
    """One class in a JVM; what it printed stands next to its reports."""
    reports = REPORTS / name
    reports.mkdir(parents=True, exist_ok=True)
    for old in reports.glob("*.xml"):
        old.unlink()
    ours_first = ["-cp", class_path(ours), f"-Dkpybroker.brokers={port}"]
    output = ["--disable-banner", "--disable-ansi-colors", "--details=tree", "--reports-dir", str(reports)]
    configuration = [word for key, value in JUNIT_KEYS.items() for word in ("--config", f"{key}={value}")]
    command = ["java", *JVM, *ours_first, JUNIT, "execute", "-c", name, *output, *configuration]
    with (reports / "output.log").open("wb") as log:
        try:
            subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=CLASS_DEADLINE_S, cwd=reports)
        except subprocess.TimeoutExpired:
            return [Result(f"{name.rpartition('.')[2]}.*", Verdict.FAILED, CLASS_DEADLINE_S, "the class did not end")]
    return [result for report in sorted(reports.glob("*.xml")) for result in read(report.read_text())]


def chosen(patterns: Iterable[str]) -> list[str]:
    """Full names of classes."""
    names = CLASSES.read_text().split()
    wanted = [pattern if set(pattern) & set("*?") else f"*{pattern}*" for pattern in patterns]
    return [name for name in names if not wanted or any(fnmatchcase(name.rpartition(".")[2], one) for one in wanted)]


def write_expected(results: Iterable[Result], classes: Iterable[str]) -> None:
    """Names of other classes stay."""
    ran = {name.rpartition(".")[2] for name in classes}
    kept = [name for name in expected() if name.partition(".")[0] not in ran]
    passed = [result.name for result in results if result.verdict is Verdict.PASSED]
    EXPECTED.write_text("".join(f"{name}\n" for name in sorted({*kept, *passed})))


def expected() -> list[str]:
    """The tests that pass."""
    return EXPECTED.read_text().split()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    classes = chosen(options.patterns)
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as ours, broker_maker() as maker:
        compile_ours(Path(ours))
        for name in classes:
            found = run_class(name, Path(ours), maker.port)
            results += found
            if options.write:
                write_expected(found, [name])
            print(f"{name}: {sum(one.verdict is Verdict.PASSED for one in found)} of {len(found)} pass", flush=True)
            for one in found:
                if one.verdict is not Verdict.PASSED:
                    print(f"  {one.name} {one.verdict.value}: {one.cause.splitlines()[0]}", flush=True)
    print("\n".join(table(results)))
    short = [name.rpartition(".")[2] for name in classes]
    if options.write:
        return 0
    missing = lost(expected(), {one.name: one for one in results}, short)
    for name in missing:
        print(f"passed before, and does not now: {name}")
    return 1 if missing or not results else 0


if __name__ == "__main__":
    sys.exit(main())
