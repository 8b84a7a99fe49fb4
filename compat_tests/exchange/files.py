"""The files of a stopped broker, as DumpLogSegments and `kpybroker log` see them: sound, and the same to both."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_tests.support.services import kpybroker_executable
from compat_tests.support.tools import Tools, run_process

DEADLINE_S = 300.0
INTERNAL = {"__consumer_offsets": "--offsets-decoder", "__transaction_state": "--transaction-log-decoder"}
INDEX_SUFFIXES = (".index", ".timeindex")

Row = dict[str, Any]

_BATCH = re.compile(r"^baseOffset: ")
_RECORD = re.compile(
    r"^\| offset: (?P<offset>\d+) (?P<type>\w+): (?P<timestamp>-?\d+) keySize: (?P<keySize>-?\d+) "
    r"valueSize: (?P<valueSize>-?\d+) sequence: (?P<sequence>-?\d+) headerKeys: \[(?P<headers>.*?)\]"
    r"(?: endTxnMarker: (?P<marker>\w+) coordinatorEpoch: (?P<coordinator>-?\d+))?"
    r"(?: key: (?P<key>.*?))?(?: payload: (?P<value>.*))?$"
)
_PAIR = re.compile(r"(\w+): (\S+)")


@dataclass(slots=True)
class Dumped:
    """What a dump says of one file: rows by kind."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))


def live_files(data_dir: Path, *suffixes: str) -> list[Path]:
    return sorted(
        file for file in data_dir.glob("*/*") if file.suffix in suffixes and not file.parent.name.endswith("-delete")
    )


def topic_of(file: str | Path) -> str:
    return Path(file).parent.name.rpartition("-")[0]


def check_files(data_dir: Path, compacted: set[str], *, is_clean: bool, is_kafka: bool) -> list[str]:
    """Everything that either tool finds wrong, and everything on which they disagree."""
    unclosed = set() if is_clean or not is_kafka else preallocated(data_dir)
    compacted = compacted | set(INTERNAL)
    problems = check_verify(data_dir, compacted, is_clean=is_clean)
    indexes = [file for file in live_files(data_dir, *INDEX_SUFFIXES) if file not in unclosed]
    logs = live_files(data_dir, ".log")
    plain = [file for file in logs if topic_of(file) not in INTERNAL]
    rest = live_files(data_dir, ".txnindex", ".snapshot")
    said, complaints = dump_with_kafka([*plain, *indexes, *rest], "--deep-iteration", "--print-data-log")
    for topic, decoder in INTERNAL.items():
        internal = [file for file in logs if topic_of(file) == topic]
        more, unhappy = dump_with_kafka(internal, "--deep-iteration", decoder)
        said |= more
        complaints += unhappy
    for option in ("--verify-index-only", "--index-sanity-check"):
        complaints += dump_with_kafka(indexes, option)[1]
    problems += [line for line in complaints if not excused(line, compacted)]
    return problems + compare(said, dump_with_kpybroker(data_dir), unclosed)


def preallocated(data_dir: Path) -> set[Path]:
    """The indexes of segments in use when Kafka was killed: it maps them, with zeros from their last entry on."""
    last: dict[Path, Path] = {}
    for log in live_files(data_dir, ".log"):
        last[log.parent] = log
    return {log.with_suffix(suffix) for log in last.values() for suffix in INDEX_SUFFIXES}


def excused(complaint: str, compacted: set[str]) -> bool:
    """What compaction leaves: gaps, and batches without records, whose largest timestamp the tool takes for -1."""
    head, *details = complaint.splitlines()
    found = re.match(r"(Non-consecutive offsets in |Found timestamp mismatch in :)(\S+)", head)
    if found is None or topic_of(found[2]) not in compacted:
        return False
    return found[1].startswith("Non-") or all(line.endswith("log timestamp: -1") for line in details)


def compacted_topics(data_dir: Path) -> set[str]:
    """Topics in which compaction has been at work, as the cleaner's checkpoint says."""
    checkpoint = data_dir / "cleaner-offset-checkpoint"
    lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    return {line.split()[0] for line in lines}


# --- kpybroker log


def kpybroker_log(*arguments: str | Path, check: bool = True) -> list[Row]:
    command = [str(kpybroker_executable()), "log", *map(str, arguments), "-o", "json"]
    result = run_process(command, check=check, deadline_s=DEADLINE_S)
    assert "Traceback" not in result.err, result.err
    return [json.loads(line) for line in result.lines]


def check_running(data_dir: Path, compacted: set[str]) -> list[str]:
    """What `kpybroker log verify` finds wrong while a broker runs."""
    return check_verify(data_dir, compacted | set(INTERNAL), is_clean=False)


def check_verify(data_dir: Path, compacted: set[str], *, is_clean: bool) -> list[str]:
    """Errors, and notes that have no reason to be there: none after a clean stop, and gaps only by compaction."""
    problems = []
    for row in kpybroker_log("verify", data_dir, check=False):
        if row["type"] == "summary":
            assert row["batches"] > 0, row
            continue
        is_known = topic_of(row["file"]) in compacted if row["check"] == "gap" else not is_clean
        if row["severity"] == "error" or not is_known:
            problems.append(f"kpybroker log verify: {row}")
    return problems


def dump_with_kpybroker(data_dir: Path) -> dict[str, Dumped]:
    found: dict[str, Dumped] = defaultdict(Dumped)
    for row in kpybroker_log("dump", data_dir, "--records"):
        found[row["file"]].rows[row["type"]].append(row)
    return found


# --- DumpLogSegments


def dump_with_kafka(files: Iterable[Path], *options: str) -> tuple[dict[str, Dumped], list[str]]:
    """What it prints of each file, parsed; and its complaints."""
    names = ",".join(map(str, files))
    if not names:
        return {}, []
    result = Tools("3.9.1", "unused").run(
        "dump-log", "--files", names, "--max-message-size", "70000000", *options, deadline_s=DEADLINE_S, check=False
    )
    found: dict[str, Dumped] = defaultdict(Dumped)
    file = ""
    complaints = complaints_of(result.err)
    for line in result.out.splitlines():
        if line.startswith("Dumping "):
            file = line.removeprefix("Dumping ")
            found[file] = Dumped()
        elif _parse(line, found[file]) is None:
            complaints.append(f"{file}: {line}")
    if result.code:
        complaints.append(f"DumpLogSegments {options} ended with {result.code}: {result.err[-500:]}")
    return found, complaints


def complaints_of(stderr: str) -> list[str]:
    """Each with the indented lines that belong to it."""
    return re.findall(r"\S.*(?:\n  .*)*", stderr)


_SILENT = re.compile(r"^(Log starting offset: .*|\S+ is empty\.|\S+ passed sanity check\.|)$")


def _parse(line: str, into: Dumped) -> bool | None:
    """None for a line that is no part of a sound file's dump."""
    if _SILENT.match(line):
        return True
    record = _RECORD.match(line)
    if record is not None:
        into.rows["record"].append(record.groupdict())
        return True
    pairs = dict(_PAIR.findall(line))
    for kind, first in _FIRST_FIELDS.items():
        if line.startswith(f"{first}: ") and (kind != "batch" or pairs.get("isvalid") == "true"):
            into.rows[kind].append(pairs)
            return True
    return None


_FIRST_FIELDS = {
    "batch": "baseOffset",
    "offsetIndex": "offset",
    "timeIndex": "timestamp",
    "abortedTxn": "version",
    "producer": "producerId",
}


# --- the two compared


def compare(kafka: dict[str, Dumped], ours: dict[str, Dumped], unclosed: set[Path]) -> list[str]:
    """Where the two dumps differ, file by file and row by row."""
    problems = []
    files = {file for file in ours if Path(file).suffix in (".log", *INDEX_SUFFIXES, ".txnindex", ".snapshot")}
    files -= {str(file) for file in unclosed}
    if files ^ set(kafka):
        problems.append(f"dumped by one only: {sorted(files ^ set(kafka))}")
    unseen = [kind for kind in _VIEWS if not any(dumped.rows[kind] for dumped in kafka.values())]
    if unseen:
        problems.append(f"nothing to compare of {unseen}")
    for file in sorted(files & set(kafka)):
        for kind, view in _VIEWS.items():
            theirs = [view[0](row) for row in kafka[file].rows[kind]]
            mine = [view[1](row) for row in ours[file].rows[kind]]
            if theirs != mine:
                at = next((n for n, pair in enumerate(zip(theirs, mine, strict=False)) if pair[0] != pair[1]), None)
                seen = (len(theirs), len(mine)) if at is None else (theirs[at], mine[at])
                problems.append(f"{file}: {kind} {at}: DumpLogSegments {seen[0]}, kpybroker log dump {seen[1]}")
    return problems


def _kafka_batch(row: Row) -> Any:
    horizon = re.fullmatch(r"OptionalLong\[(\d+)\]", row["deleteHorizonMs"])
    kind = "LogAppendTime" if "LogAppendTime" in row else "CreateTime"
    numbers = ("baseOffset", "lastOffset", "count", "baseSequence", "lastSequence", "producerId", "producerEpoch")
    return (
        *(int(row[name]) for name in (*numbers, "partitionLeaderEpoch", "position", "size", "magic", "crc")),
        *(row[name] == "true" for name in ("isTransactional", "isControl", "isvalid")),
        int(horizon[1]) if horizon else None,
        kind,
        int(row[kind]),
        row["compresscodec"],
    )


def _our_batch(row: Row) -> Any:
    numbers = ("baseOffset", "lastOffset", "count", "baseSequence", "lastSequence", "producerId", "producerEpoch")
    return (
        *(row[name] for name in (*numbers, "partitionLeaderEpoch", "position", "size", "magic", "crc")),
        *(row[name] for name in ("isTransactional", "isControl", "isValid", "deleteHorizonMs")),
        row["timestampType"],
        row["timestamp"],
        row["compression"],
    )


def _kafka_record(row: Row) -> Any:
    numbers = tuple(int(row[name]) for name in ("offset", "timestamp", "keySize", "valueSize", "sequence"))
    if row["marker"] is not None:
        return (*numbers, row["marker"], int(row["coordinator"]))
    return (*numbers, row["headers"], _kafka_part(row["key"]), _kafka_part(row["value"]))


def _kafka_part(printed: str | None) -> Any:
    """A decoded key or value of `__consumer_offsets` is JSON; of `__transaction_state` some words; else the text."""
    if printed is not None and printed.startswith(('{"type":', '{"version":')):
        said = json.loads(printed)
        return int(said.get("type", said.get("version"))), said["data"]
    state = re.fullmatch(
        r"producerId:(\d+),producerEpoch:(\d+),state=(\w+),partitions=.*,txnTimeoutMs=(\d+)", printed or ""
    )
    if state is not None:
        return tuple(state.groups())
    if printed is not None and printed.startswith("transaction_metadata::transactionalId="):
        return printed.partition("=")[2]
    return None if printed == "<DELETE>" else printed


def _our_record(row: Row) -> Any:
    numbers = tuple(row[name] for name in ("offset", "timestamp", "keySize", "valueSize", "sequence"))
    if "control" in row:
        return (*numbers, row["control"], row["coordinatorEpoch"])
    headers = ",".join(header["key"] for header in row["headers"])
    return (*numbers, headers, _our_part(row["key"]), _our_part(row["value"]))


def _our_part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    data = part["data"]
    if part["type"] == "TransactionLogKey":
        return data["transactionalId"]
    if part["type"] == "TransactionLogValue":
        state = part["state"]
        return str(data["producerId"]), str(data["producerEpoch"]), state, str(data["transactionTimeoutMs"])
    for member in data.get("members", ()):
        for name in ("subscription", "assignment"):
            if isinstance(member[name], dict):
                del member[name]["version"]
    return part["version"], data


def _numbers(*names: str) -> Any:
    return lambda row: tuple(None if row[name] is None else int(row[name]) for name in names)


def _kafka_producer(row: Row) -> Any:
    first = row["currentTxnFirstOffset"]
    found = re.fullmatch(r"OptionalLong\[(\d+)\]", first)
    batch = ("firstSequence", "lastSequence", "lastOffset", "offsetDelta")
    return (
        *(int(row[name]) for name in ("producerId", "producerEpoch", "coordinatorEpoch", "lastTimestamp")),
        int(found[1]) if found else None,
        *(int(row[name]) if name in row else None for name in batch),
    )


_PRODUCER = ("producerId", "producerEpoch", "coordinatorEpoch", "lastTimestamp", "currentTxnFirstOffset")

_VIEWS = {
    "batch": (_kafka_batch, _our_batch),
    "record": (_kafka_record, _our_record),
    "offsetIndex": (_numbers("offset", "position"), _numbers("offset", "position")),
    "timeIndex": (_numbers("timestamp", "offset"), _numbers("timestamp", "offset")),
    "abortedTxn": (
        _numbers("producerId", "firstOffset", "lastOffset", "lastStableOffset"),
        _numbers("producerId", "firstOffset", "lastOffset", "lastStableOffset"),
    ),
    "producer": (
        _kafka_producer,
        _numbers(*_PRODUCER, "firstSequence", "lastSequence", "lastOffset", "offsetDelta"),
    ),
}
