"""Writes docs/reference/compatibility.md: the APIs, from the handlers' ledgers, and the test results of clients.

    python -m compat_tests.compatibility [--check] [--results FILE.xml ...]

The results are the JUnit files that `make compat` and `make compat-kafka` leave in `.cache/`; without them the tables
of clients stay as they are in the document. `--check` writes nothing and fails when the table of APIs is stale.
"""

from __future__ import annotations

import argparse
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kpybroker.broker.handlers import routes
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.broker.requests.served.kafka_releases import versions_of
from kpybroker.wire.api import API_INFO, ApiKey

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "reference" / "compatibility.md"
RELEASES = ("3.9", "4.3")
"""Of Kafka, whose versions stand next to ours."""
CLIENTS_HEADING = "## Clients and tools\n"

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


def clients(results: Sequence[Path]) -> str:
    """One row a test file and broker: how many tests passed, failed, were skipped."""
    counts: dict[str, dict[str, Counter[str]]] = {}
    brokers: list[str] = []
    for path in results:
        broker = path.stem.removeprefix("compat-")
        brokers.append(broker)
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            outcome = next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")
            suite = case.get("classname", "").removeprefix("compat_tests.")
            counts.setdefault(suite, {}).setdefault(broker, Counter())[outcome] += 1
    lines = [
        CLIENTS_HEADING,
        "Tests of `compat_tests/` that passed, of those that ran; the same ids on both brokers.\n",
    ]
    lines.append("| suite | " + " | ".join(brokers) + " |")
    lines.append("|---|" + "---|" * len(brokers))
    for suite in sorted(counts):
        cells = []
        for broker in brokers:
            found = counts[suite].get(broker, Counter())
            cells.append(f"{found['passed']} of {found.total()}" if found else "")
        lines.append(f"| `{suite}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--results", nargs="*", type=Path, default=[])
    arguments = parser.parse_args()
    written = DOCUMENT.read_text() if DOCUMENT.exists() else ""
    table = apis()
    if arguments.check:
        if not written.startswith(table):
            sys.stderr.write("docs/reference/compatibility.md is stale: python -m compat_tests.compatibility\n")
            return 1
        return 0
    _, heading, rest = written.partition(CLIENTS_HEADING)
    DOCUMENT.write_text(table + (clients(arguments.results) if arguments.results else heading + rest))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
