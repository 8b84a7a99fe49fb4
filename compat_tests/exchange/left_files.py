"""Kafka's own DumpLogSegments over every file that the session's broker has, while it is down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compat_tests.exchange.files import compacted_topics, complaints_of, excused
from compat_tests.support.services import Broker
from compat_tests.support.tools import Result, Tools

DAMAGE = (
    "isvalid: false",
    "Mismatches in",
    "Found timestamp mismatch",
    "Found out of order",
    "Non-consecutive offsets",
)
BATCH = re.compile(r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*?isvalid: (\w+)", re.MULTILINE)
FILES_PER_RUN = 400


@contextmanager
def stopped(broker: Broker) -> Iterator[Path]:
    """Its data directory while it is down."""
    broker.stop()
    try:
        yield broker.data_dir
    finally:
        broker.start()


def files_of(directory: Path, pattern: str) -> list[Path]:
    """Files of live partitions: a topic whose deletion is under way is not looked at."""
    return sorted(file for file in directory.glob(pattern) if not file.parent.name.endswith("-delete"))


def dump(files: list[Path], *options: str, compacted: set[str] | None = None) -> str:
    """The tool's whole output over `files`, 3.9.1's. Gaps are right in `compacted` topics, by default those cleaned."""
    assert files
    tools = Tools("3.9.1", "unused")
    results: list[Result] = []
    for at in range(0, len(files), FILES_PER_RUN):
        names = ",".join(map(str, files[at : at + FILES_PER_RUN]))
        results.append(
            tools.run("dump-log", "--files", names, "--max-message-size", "70000000", *options, deadline_s=300)
        )
    if compacted is None:
        compacted = compacted_topics(files[0].parent.parent)
    for result in results:
        assert not [complaint for complaint in complaints_of(result.err) if not excused(complaint, compacted)]
    return "\n".join(result.out for result in results)


def undamaged(output: str) -> None:
    for words in DAMAGE:
        at = output.find(words)
        assert at < 0, output[max(0, at - 1500) : at + 500]


def sections(output: str) -> dict[str, str]:
    """`Dumping FILE` headers split the output."""
    parts = re.split(r"^Dumping (\S+)$", output, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def check_segments(directory: Path) -> int:
    """Every batch has a valid CRC and follows the one before it; every file is read to its end. How many batches."""
    files = files_of(directory, "*/*.log")
    output = dump(files, "--deep-iteration")
    undamaged(output)
    found = sections(output)
    assert set(found) == set(map(str, files))
    batches = 0
    for file, text in found.items():
        next_offset = int(Path(file).stem)
        for base, last, _count, valid in BATCH.findall(text):
            assert valid == "true", f"{file}: {text[:1000]}"
            assert next_offset <= int(base) <= int(last), f"{file}: {base}..{last} after {next_offset}"
            next_offset = int(last) + 1
            batches += 1
        rest = re.search(r"Found (\d+) invalid bytes at the end of", text)
        assert rest is None, f"{file}: {rest and rest[0]}"
    return batches
