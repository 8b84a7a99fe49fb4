"""Kafka's own DumpLogSegments over every segment of a data directory, its output parsed."""

from __future__ import annotations

import re
from pathlib import Path

from compat_tests.support.tools import Tools, run_process

FILES_PER_RUN = 200
DEADLINE_S = 600.0
DAMAGE = (
    "isvalid: false",
    "Mismatches in",
    "Found timestamp mismatch",
    "Found out of order",
    "Non-consecutive offsets",
)
_MISMATCHES = re.compile(
    r"^STDERR Mismatches in :\S+\.index\n(?:STDERR +Index offset: \d+, log offset: \d+\n?)+", re.MULTILINE
)
_MISMATCH = re.compile(r"Index offset: (\d+), log offset: (\d+)")
_FILE = re.compile(r"^Dumping (\S+)$", re.MULTILINE)
_BATCH = re.compile(r"^baseOffset: (\d+) lastOffset: (\d+) count: \d+ ", re.MULTILINE)


def dump_segments(data_dir: Path) -> str:
    """What `--deep-iteration` says of every .log, .index and .timeindex of live partitions; complaints go to stderr."""
    live = [place for place in sorted(data_dir.iterdir()) if place.is_dir() and not place.name.endswith("-delete")]
    files = [
        file for place in live for file in sorted(place.iterdir()) if file.suffix in (".log", ".index", ".timeindex")
    ]
    assert files, f"no segments in {data_dir}"
    tools = Tools("3.9.1", "unused")
    said: list[str] = []
    for start in range(0, len(files), FILES_PER_RUN):
        names = ",".join(map(str, files[start : start + FILES_PER_RUN]))
        options = ("--files", names, "--deep-iteration", "--max-message-size", "70000000")
        # in a process of its own: the JVM that stays keeps indexes mapped, and a disk that is in use is not unmounted
        result = run_process(tools.command("dump-log", *options), deadline_s=DEADLINE_S)
        said += [result.out, *(f"STDERR {line}" for line in result.err.splitlines())]
    return "\n".join(said)


def excuse_followers(output: str) -> str:
    """Without the index entries of appends of several batches, which are a follower's: Kafka's are the same.

    Such an entry names the last offset of them all (`LogSegment.append`); the tool expects that of the first batch.
    """

    def judged(found: re.Match[str]) -> str:
        entries = _MISMATCH.findall(found.group())
        return "" if all(int(index) > int(log) for index, log in entries) else found.group()

    return _MISMATCHES.sub(judged, output)


def find_damage(output: str) -> list[str]:
    """What is wrong in the tool's output: its own complaints, and batches of a partition that do not join up."""
    problems = []
    for words in (*DAMAGE, "STDERR "):
        at = output.find(words)
        if at >= 0:
            problems.append(f"DumpLogSegments: {output[max(0, at - 300) : at + 300]}")
    ends: dict[str, int] = {}
    parts = _FILE.split(output)[1:]
    for file, text in zip(parts[::2], parts[1::2], strict=True):
        if not file.endswith(".log"):
            continue
        partition, _, name = file.rpartition("/")
        expected = ends.get(partition, int(name.removesuffix(".log")))
        for first, last in _BATCH.findall(text):
            if int(first) != expected:
                problems.append(f"DumpLogSegments: {file} goes on at {first} where {expected} should be")
            expected = int(last) + 1
        ends[partition] = expected
    return problems
