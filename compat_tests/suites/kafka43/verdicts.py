"""What JUnit's reports say of each test, and what a failure means."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

NEEDS_OBJECTS = re.compile(r"NeedsBrokerObjects: (.+)")
UNSERVED_VERSIONS = re.compile(
    r"UnsupportedVersionException|EOFException[\s\S]*(?:connectAndReceive|BaseRequestTest\.sendAndReceive)"
    r"|Unknown resource type 32|API keys in ApiVersionsResponse must match"
)
"""A client that minds ApiVersions says so itself; to raw requests of such a version a broker ends the connection."""
INVOCATION = re.compile(r"^(\w+)\(.*\)\[(\d+)\]$|^(\w+)\{.*\}\[(\d+)\]$|^(\w+)(?:\(.*\))?()$")
ISOLATED, COMBINED = "Type=Raft-Isolated", "Type=Raft-Combined"
CAUSE_LENGTH = 300


class Verdict(Enum):
    """The columns of the table."""

    PASSED = "passed"
    NEEDS_OBJECTS = "needs the broker's Java objects"
    UNSERVED_VERSIONS = "wants versions or keys that are not served"
    FAILED = "fails"


class Result(NamedTuple):
    """`name` is `Class.method[n]`, where n counts the clusters that the method asks for.

    `cause` is what a failure says, or which Java object it needs.
    """

    name: str
    verdict: Verdict
    seconds: float
    cause: str


def read(report: str) -> list[Result]:
    """The results of one XML report of JUnit's console, without what was left out.

    Of Kafka's own two clusters for one test, the one with the controller in the broker's process is left out here if
    both ran.
    """
    found: list[tuple[str, str, int, ElementTree.Element]] = []
    for case in ElementTree.fromstring(report).iter("testcase"):
        if case.find("skipped") is None:
            method, invocation = split(case.attrib["name"])
            found.append((case.attrib["classname"].rpartition(".")[2], method, invocation, case))
    isolated = {one[:2] for one in found if ISOLATED in _output(one[3])}
    once = [one for one in found if one[:2] not in isolated or COMBINED not in _output(one[3])]
    return list(_numbered(sorted(once, key=lambda one: one[:3])))


def _output(case: ElementTree.Element) -> str:
    """The console puts the name that is displayed there."""
    return "".join(part.text or "" for part in case.findall("system-out"))


def split(name: str) -> tuple[str, int]:
    """`testJoin(ClusterInstance)[3]`: method and number of the invocation, which is 1 where there is none."""
    matched = INVOCATION.match(name)
    if matched is None:
        return name, 1
    method, number = [part for part in matched.groups() if part is not None][:2]
    return method, int(number or 1)


def _numbered(cases: Iterable[tuple[str, str, int, ElementTree.Element]]) -> Iterator[Result]:
    """Numbers without gaps: which of two equal clusters of Kafka's comes first is chance."""
    count: Counter[tuple[str, str]] = Counter()
    for class_name, method, _, case in cases:
        count[class_name, method] += 1
        name = f"{class_name}.{method}[{count[class_name, method]}]"
        failure = case.find("failure") if case.find("failure") is not None else case.find("error")
        seconds = float(case.attrib.get("time", "0").replace(",", ""))
        if failure is None:
            yield Result(name, Verdict.PASSED, seconds, "")
        else:
            kind, message = failure.attrib.get("type", ""), failure.attrib.get("message", "")
            text = f"{kind}: {message}\n{failure.text or ''}"
            verdict, needed = judge(text), NEEDS_OBJECTS.search(text)
            cause = needed[1] if needed and verdict is Verdict.NEEDS_OBJECTS else text
            yield Result(name, verdict, seconds, cause.strip()[:CAUSE_LENGTH])


def judge(text: str) -> Verdict:
    """Why a test failed, by what it said."""
    if NEEDS_OBJECTS.search(text):
        return Verdict.NEEDS_OBJECTS
    if UNSERVED_VERSIONS.search(text):
        return Verdict.UNSERVED_VERSIONS
    return Verdict.FAILED


def lost(expected: Iterable[str], results: Mapping[str, Result], classes: Iterable[str]) -> list[str]:
    """Which ids were expected to pass in the classes that ran, and did not."""
    ran = set(classes)
    return [
        name
        for name in expected
        if name.partition(".")[0] in ran and (name not in results or results[name].verdict is not Verdict.PASSED)
    ]


def table(results: Iterable[Result]) -> list[str]:
    """Rows of Markdown by class: how many of each verdict."""
    counts: dict[str, Counter[Verdict]] = {}
    for one in results:
        counts.setdefault(one.name.partition(".")[0], Counter())[one.verdict] += 1
    rows = ["| class | " + " | ".join(verdict.value for verdict in Verdict) + " |", "|---|" + "---|" * len(Verdict)]
    total: Counter[Verdict] = Counter()
    for name in sorted(counts):
        total += counts[name]
        rows.append(_row(f"`{name}`", counts[name]))
    return [*rows, _row("all", total)]


def _row(name: str, counts: Counter[Verdict]) -> str:
    return f"| {name} | " + " | ".join(str(counts[verdict] or "") for verdict in Verdict) + " |"
