"""Where a run begins and ends."""

from __future__ import annotations

import argparse
import json

import pytest

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime import arguments, start
from kpybroker.pipelines.runtime.options import parse
from kpybroker.pipelines.warehouse.pipeline import WAREHOUSE

NEEDED = ["--bootstrap-servers", "127.0.0.1:9092", "--input", "orders", "--output", "/data"]
STREAM = [*NEEDED, "--checkpoint", "/c"]
SECONDS_OF_8 = 1_709_625_600  # 2024-03-05T08:00:00Z


@pytest.mark.parametrize(
    ("text", "zone", "seconds"),
    [
        ("2024-03-05T08:00:00Z", "Europe/Oslo", SECONDS_OF_8),
        ("2024-03-05T08:00:00", "UTC", SECONDS_OF_8),
        ("2024-03-05T09:00:00", "Europe/Oslo", SECONDS_OF_8),
        ("2024-03-05T10:00:00+02:00", "UTC", SECONDS_OF_8),
    ],
)
def test_a_time_begins_at_its_records(text: str, zone: str, seconds: int) -> None:
    assert start.beginning(arguments.start(text), zone, {"orders": 3})["startingTimestamp"] == f"{seconds}000"
    assert start.ending(text, zone) == {"endingTimestamp": f"{seconds}000"}


def test_offsets_begin_there_and_other_partitions_at_their_start() -> None:
    found = start.beginning("orders:0:12,orders:2:7", "UTC", {"orders": 3, "more": 1})
    assert json.loads(found["startingOffsets"]) == {"orders": {"0": 12, "1": -2, "2": 7}, "more": {"0": -2}}
    with pytest.raises(PipelineError, match=r"orders has 3 partitions, and --starting-offsets names orders:3\."):
        start.beginning("orders:3:0", "UTC", {"orders": 3})


@pytest.mark.parametrize("name", ["earliest", "latest"])
def test_a_name_is_given_as_it_is(name: str) -> None:
    assert start.beginning(arguments.start(name), "UTC", {"orders": 3}) == {"startingOffsets": name}
    assert start.ending(None, "UTC") == {}


@pytest.mark.parametrize("text", ["", "yesterday", "orders:0", "orders:a:1", "orders:0:-1", "2024-13-05T08:00:00"])
def test_what_is_no_start_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        arguments.start(text)


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        (["--until", "2024-03-05T08:00:00Z"], "--until is the end of a bounded set"),
        (["--starting-offsets", "others:0:5"], "--starting-offsets names others, which is not read"),
        (["--until", "noon"], "'noon' is not a time"),
        (["--min-partitions", "0"], "'0' is not a number above 0"),
        (["--output", "postgresql://me:secret@db/sales"], "a password is seen by all users"),
        (["--output", "postgresql://db"], "it is not postgresql://USER@HOST:PORT/DATABASE"),
        (["--output", "postgresql://db:port/sales"], "Port could not be cast"),
    ],
)
def test_options_that_do_not_fit_are_named_and_no_password_is_shown(more: list[str], cause: str) -> None:
    with pytest.raises(PipelineError, match=cause) as found:
        parse(WAREHOUSE, [*STREAM, *more])
    assert "secret" not in str(found.value)


def test_databases_are_outputs_next_to_directories() -> None:
    options = parse(WAREHOUSE, [*STREAM, "--output", "postgresql://me@db:5433/sales"])
    assert (options.directories, options.databases) == (["/data"], ["postgresql://me@db:5433/sales"])
