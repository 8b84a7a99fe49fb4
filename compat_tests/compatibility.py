"""Writes docs/reference/compatibility.md: the APIs, from the handlers' ledgers, and the test results of clients.

    python -m compat_tests.compatibility [--check] [--results FILE.xml ...]

The results are the JUnit files that `make compat` and `make compat-kafka` leave in `.cache/`, or those of a run of some
files: what they have of a suite is recorded, and of the others the document's rows stay. Each file of tests has a row,
also one whose result was not recorded yet. `--check` writes nothing and fails when a table is stale.
"""

from __future__ import annotations

import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kpybroker.broker.handlers import routes
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.broker.requests.served.kafka_releases import versions_of
from kpybroker.wire.api import API_INFO, ApiKey

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "reference" / "compatibility.md"
RELEASES = ("3.9", "4.3")
"""Of Kafka, whose versions stand next to ours."""
TESTS = ROOT / "compat_tests"
BROKERS = ("kpybroker", "kafka")
CLIENTS_HEADING = "## Clients and tools\n"
CLIENTS = """\
Tests of `compat_tests/` that passed, of those that ran, as they were recorded last. The ids are the same on both
brokers; Kafka has no entry where the tests are of kpybroker's own tools or start brokers by themselves, which may be
Kafka's. A row without a day has no recorded run yet.

| suite | recorded | kpybroker | kafka |
|---|---|---|---|"""
ROW = re.compile(r"^\| `([\w.]+)` \| ([\d-]*) \| ([^|]*?) ?\| ([^|]*?) ?\|$", re.MULTILINE)

INTRODUCTION = """# APIs and clients

<!-- Written by `python -m compat_tests.compatibility`: change the handlers' ledgers or the tests, not this page. -->

## APIs that are served

Every version in the table is served completely and advertised. Next to them are the versions of Kafka 3.9 with
ZooKeeper and of Kafka 4.3 with KRaft. The last column says what a version added, and what is deliberately absent.

| key | API | versions | 3.9 | 4.3 | behaviour |
|---|---|---|---|---|---|
"""

NOT_SERVED = """
## APIs that are not served

Kafka 4.3 has these too. They are neither served nor advertised.

| key | API | what it is for |
|---|---|---|
"""

KRAFT = "KRaft"
NOT_HERE: Mapping[str, Mapping[int, str]] = {
    KRAFT: {
        52: "Vote",
        53: "BeginQuorumEpoch",
        54: "EndQuorumEpoch",
        55: "DescribeQuorum",
        58: "Envelope",
        59: "FetchSnapshot",
        62: "BrokerRegistration",
        63: "BrokerHeartbeat",
        64: "UnregisterBroker",
        70: "ControllerRegistration",
        73: "AssignReplicasToDirs",
        80: "AddRaftVoter",
        81: "RemoveRaftVoter",
        82: "UpdateRaftVoter",
    },
}
"""The APIs of Kafka 4.3 that have no handler, by what they are for. With those that have one, they are all."""


def ledger_of(key: ApiKey) -> Ledger:
    return routes.load(key).LEDGER


def api_rows(keys: Iterable[ApiKey]) -> list[str]:
    rows = []
    for key in sorted(keys):
        ledger = ledger_of(key)
        notes = [f"{version}: {note}" for version, note in sorted(ledger.versions.items())]
        text = "; ".join(notes)
        if ledger.absent:
            text += f". **Absent:** {ledger.absent}"
        name = API_INFO[key].name
        cells = (f"{ledger.min_version}-{ledger.max_version}", *(versions_in(release, key) for release in RELEASES))
        rows.append(f"| {int(key)} | {name} | {' | '.join(cells)} | {text} |")
    return rows


def versions_in(release: str, key: ApiKey) -> str:
    """The versions that a release of Kafka serves; a dash for none."""
    found = versions_of(release).get(key)
    return f"{found[0]}-{found[1]}" if found else "–"


def missing_rows() -> list[str]:
    missing = {key: (name, subject) for subject, apis in NOT_HERE.items() for key, name in apis.items()}
    return [f"| {key} | {name} | {subject} |" for key, (name, subject) in sorted(missing.items())]


def absent() -> dict[str, list[str]]:
    """What APIs that are served leave out -> their names, as their ledgers have it."""
    found: dict[str, list[str]] = {}
    for key in sorted(SERVED):
        text = ledger_of(key).absent
        if text:
            found.setdefault(text, []).append(API_INFO[key].name)
    return found


def apis() -> str:
    return INTRODUCTION + "\n".join([*api_rows(SERVED), NOT_SERVED.rstrip("\n"), *missing_rows()]) + "\n\n"


class Cell(NamedTuple):
    """What was recorded of a suite on one broker: how many tests passed of those that ran, and the day."""

    text: str
    day: str


Recorded = dict[tuple[str, str], Cell]
"""By the suite and the broker."""


def suites() -> list[str]:
    """Every file of tests, as the table names it."""
    found = (path.relative_to(TESTS).with_suffix("") for path in TESTS.rglob("test_*.py"))
    return sorted(".".join(one.parts) for one in found)


def kept(written: str) -> Recorded:
    """What a document has recorded."""
    found: Recorded = {}
    for suite, day, *cells in ROW.findall(written):
        found |= {(suite, broker): Cell(text, day) for broker, text in zip(BROKERS, cells, strict=True) if text}
    return found


def recorded(results: Sequence[Path]) -> Recorded:
    """What JUnit files have: the name of each ends with its broker's."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    days: dict[str, str] = {}
    for path in results:
        broker = path.stem.removeprefix("compat-")
        root = ElementTree.parse(path).getroot()
        days[broker] = max(one.get("timestamp", "")[:10] for one in root.iter("testsuite"))
        for case in root.iter("testcase"):
            outcome = next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")
            suite = case.get("classname", "").removeprefix("compat_tests.")
            counts.setdefault((suite, broker), Counter())[outcome] += 1
    return {
        place: Cell(f"{found['passed']} of {found.total()}", days[place[1]]) for place, found in sorted(counts.items())
    }


def clients(found: Recorded) -> str:
    """One row a test file, those without a result too: how many tests passed, of those that ran."""
    lines = [CLIENTS_HEADING, CLIENTS]
    for suite in suites():
        cells = [found.get((suite, broker), Cell("", "")) for broker in BROKERS]
        lines.append(f"| `{suite}` | {max(one.day for one in cells)} | {' | '.join(one.text for one in cells)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--results", nargs="*", type=Path, default=[])
    arguments = parser.parse_args()
    written = DOCUMENT.read_text() if DOCUMENT.exists() else ""
    document = apis() + clients({**kept(written), **recorded(arguments.results)})
    if arguments.check:
        if written != document:
            sys.stderr.write("docs/reference/compatibility.md is stale: python -m compat_tests.compatibility\n")
            return 1
        return 0
    DOCUMENT.write_text(document)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
