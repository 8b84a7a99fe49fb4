"""Which versions of which APIs each release of Kafka serves, out of its own jar; writes the tables of `cap_versions`.

    python -m compat_tests.protocol.kafka_releases            # fetch kafka-clients of every release, write the tables
    python -m compat_tests.protocol.kafka_releases --check    # fail if they differ

The jars come from Maven Central, some 130 MB in all, into `.cache/jvm/clients`. `test_kafka_releases` compares the
tables with the jars that the other tests need anyway. They have the APIs that `ApiKey` names.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from compat_tests.deps import CACHE, ROOT, jars_dir
from compat_tests.support.tools import JVM_OPTIONS, compiled
from kpybroker.broker.requests.served.kafka_releases import KRAFT_RELEASES, RELEASES, ZOOKEEPER_RELEASES
from kpybroker.wire.api import ApiKey

PRINTER = Path(__file__).with_name("ApiVersions.java")
TABLES = ROOT / "kpybroker" / "broker" / "requests" / "served" / "kafka_releases.py"
JARS = CACHE / "jvm" / "clients"
COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
JAVA_SECONDS_MAX = 240

PATCHES = (
    *("0.10.0.1", "0.10.1.1", "0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1"),
    *("2.0.1", "2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2"),
    *("3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.1"),
    *("4.0.1", "4.1.1", "4.2.0", "4.3.1"),
)
"""Of each of `RELEASES` the patch that is asked."""

Versions = dict[int, tuple[int, int]]
"""(oldest, newest) by API key."""


def versions_in(jar: Path) -> Versions:
    """What the release of this kafka-clients jar serves."""
    logging = next(jars_dir("kafka-3.9.1").glob("slf4j-api-*.jar"))
    done = subprocess.run(
        ["java", *JVM_OPTIONS, "-cp", f"{jar}:{logging}:{compiled(PRINTER)}", PRINTER.stem],
        capture_output=True,
        text=True,
        timeout=JAVA_SECONDS_MAX,
        check=True,
    )
    lines = (list(map(int, line.split())) for line in done.stdout.splitlines())
    return {key: (oldest, newest) for key, oldest, newest in lines}


def fetched(version: str) -> Path:
    """The jar of kafka-clients, from Maven Central if it is not there yet."""
    jar = JARS / f"kafka-clients-{version}.jar"
    if not jar.exists():
        artifact = f"org.apache.kafka:kafka-clients:{version}:jar"
        subprocess.run(
            ["mvn", "-q", "-B", "-ntp", COPY_GOAL, f"-Dartifact={artifact}", f"-DoutputDirectory={JARS}"], check=True
        )
    return jar


def table(found: Mapping[str, Versions]) -> str:
    """The rows of `kafka_releases.TABLE`, or of `KRAFT_TABLE`."""
    known = sorted(key for key in ApiKey if any(key in versions for versions in found.values()))
    width = max(len(key.name) for key in known)
    lines = []
    for key in known:
        cells = [_cell(versions.get(key)) for versions in found.values()]
        lines.append(" ".join([key.name.ljust(width), *(cell.rjust(2) for cell in cells)]))
    return "\n".join(lines) + "\n"


def _cell(versions: tuple[int, int] | None) -> str:
    if versions is None:
        return "-"
    oldest, newest = versions
    return f"{oldest}-{newest}" if oldest else str(newest)


def main(arguments: list[str]) -> int:
    text = wanted = TABLES.read_text()
    found = {release: versions_in(fetched(patch)) for release, patch in zip(RELEASES, PATCHES, strict=True)}
    for name, releases in {"TABLE": ZOOKEEPER_RELEASES, "KRAFT_TABLE": KRAFT_RELEASES}.items():
        before, mark, rest = wanted.partition(f'\n{name} = """\n')
        _, end, after = rest.partition('"""\n')
        wanted = before + mark + table({release: found[release] for release in releases}) + end + after
    if "--check" in arguments:
        return int(wanted != text)
    TABLES.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
