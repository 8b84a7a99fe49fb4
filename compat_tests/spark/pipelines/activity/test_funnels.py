"""Bots and funnels of the pipeline `activity` against a recount in plain Python."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from compat_tests.conftest import MakeTopic
from compat_tests.spark.pipelines.activity.test_pipeline import (
    END_OF_TIME,
    GAP,
    MINUTE_MS,
    MORNING,
    WINDOW,
    Lines,
    millis,
    options_for,
    run,
    write,
)
from compat_tests.spark.pipelines.activity.test_pipeline import own as with_own
from compat_tests.support.services import Broker

FUNNEL = ("/", "/product/*", "/cart", "/checkout")
PAGES = ["/", "/product/1", "/product/2", "/cart", "/checkout", "/help"]
AGENTS = {
    "a": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "b": "Mozilla/5.0 (compatible; Examplebot/2.1; +http://example.org/bot.html)",
    "c": "curl/8.5.0",
    "d": "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) Version/17.4 Robotics/1",
}
BOTS = {AGENTS["b"], AGENTS["c"]}


def some_visits(seed: int, count: int) -> list[dict[str, Any]]:
    """Pages in no order whatever; visitors come back after the gap, and each has one agent or none."""
    dice = random.Random(seed)
    out = []
    for number in range(count):
        when = MORNING + timedelta(seconds=dice.randrange(2 * 3600))
        visitor = f"{dice.choice('aaabcde')}{dice.randrange(3)}"
        out.append({"ms": round(when.timestamp() * 1000), "page": dice.choice(PAGES), "visitor": visitor, "n": number})
    return out


def as_json(visit: dict[str, Any]) -> str:
    agent = AGENTS.get(visit["visitor"][0])
    named = {"agent": agent} if agent else {}
    return json.dumps({"timestamp": visit["ms"], "page": visit["page"], "user": visit["visitor"], **named})


def as_access(visit: dict[str, Any]) -> str:
    when = MORNING + timedelta(milliseconds=visit["ms"] - round(MORNING.timestamp() * 1000))
    agent = AGENTS.get(visit["visitor"][0], "-")
    request = f"GET {visit['page']}?q=1 HTTP/1.1"
    return f'{visit["visitor"]} - - [{when:%d/%b/%Y:%H:%M:%S} +0000] "{request}" 200 1 "-" "{agent}"'


def reached(pages: list[str]) -> int:
    done = 0
    for page in pages:
        step = FUNNEL[done] if done < len(FUNNEL) else None
        if step is not None and (page == step or (step.endswith("*") and page.startswith(step[:-1]))):
            done += 1
    return done


def expected_funnels(visits: list[dict[str, Any]]) -> Counter[tuple[int, int, str]]:
    """(start of the window, step, page) -> sessions. The time of a session is its end, the gap included."""
    found: Counter[tuple[int, int, str]] = Counter()
    by_visitor = defaultdict(list)
    for visit in visits:
        by_visitor[visit["visitor"]].append((visit["ms"], visit["n"] % 2, visit["n"], visit["page"]))
    for of_visitor in by_visitor.values():
        session: list[tuple[int, int, int, str]] = []
        for event in [*sorted(of_visitor), None]:
            if session and (event is None or event[0] - session[-1][0] > GAP * MINUTE_MS):
                # a session has ended one microsecond before the end of its window
                end = session[-1][0] + GAP * MINUTE_MS - 1
                start = end // (WINDOW * MINUTE_MS) * WINDOW * MINUTE_MS
                for step in range(reached([page for *_, page in session])):
                    found[start, step + 1, FUNNEL[step]] += 1
                session = []
            if event is not None:
                session.append(event)
    return found


@pytest.mark.parametrize("form", [pytest.param("activity", marks=pytest.mark.wide), "access"])
def test_bots_are_counted_apart_and_sessions_at_each_step(
    spark: SparkSession, broker: Broker, topic: MakeTopic, tmp_path: Path, form: str
) -> None:
    options: Lines = with_own(options_for(broker, topic(partitions=2), tmp_path), format=form, funnel=FUNNEL)
    visits = some_visits(31, 1000)
    write(
        broker, options.input[0], [{"activity": as_json, "access": as_access}[form](one) for one in visits], END_OF_TIME
    )
    assert run(spark, options).broken == 0

    def rows(result: str) -> list[dict[str, Any]]:
        frame = spark.read.parquet(f"{options.directories[0]}/{result}").withColumnRenamed("window_start", "at")
        return [row.asDict() for row in frame.selectExpr("*", "unix_millis(at) as start").collect()]

    people = [one for one in visits if AGENTS.get(one["visitor"][0]) not in BOTS]
    machines = Counter(
        (one["ms"] // (WINDOW * MINUTE_MS) * WINDOW * MINUTE_MS, AGENTS[one["visitor"][0]])
        for one in visits
        if AGENTS.get(one["visitor"][0]) in BOTS
    )
    assert len(people) < len(visits)
    assert sum(row["events"] for row in rows("page_counts")) == len(people)
    assert {(row["start"], row["agent"]): row["events"] for row in rows("bots")} == machines
    found = {(row["start"], row["step"], row["page"]): row["sessions"] for row in rows("funnels")}
    assert found == expected_funnels(people)
    assert {step for _, step, _ in found} == {1, 2, 3, 4}, "some sessions come to each step"
    assert millis(END_OF_TIME) > max(start for start, _, _ in found)
