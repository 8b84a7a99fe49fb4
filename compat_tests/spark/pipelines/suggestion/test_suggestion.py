"""The pipeline `suggestion` against a recount in plain Python: late and broken lines, a product of all, a robot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import ConfigResource, NewPartitions, ResourceType
from pyspark.sql import SparkSession

from compat_tests.conftest import MakeTopic
from compat_tests.spark.pipelines.activity.test_pipeline import committed, millis
from compat_tests.spark.pipelines.recounts.suggestion import Line, Recount, last_of_each, understood
from compat_tests.support.quick import DEADLINE_S, QUIET, admin_client, create_topic
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.options import Options, Run
from kpybroker.pipelines.runtime.run import run
from kpybroker.pipelines.suggestion.als import Factors
from kpybroker.pipelines.suggestion.generator import EVERYONES, Purchase, Workload, lines
from kpybroker.pipelines.suggestion.pipeline import ALS, SUGGESTION, SuggestionOptions
from kpybroker.pipelines.suggestion.results import Ranking

DAY_MS, MINUTE_MS = 86_400_000, 60_000
START = datetime(2024, 2, 29, tzinfo=UTC)  # a week of the windows begins: they count from 1970-01-01, a Thursday
PLAN = Workload(seed=5, start=START, weeks=5, users=20, products=48, days=5.0, broken=0.03, late=0.05)
END = (START + timedelta(weeks=5, hours=2)).isoformat()
"""A heartbeat that closes the windows up to the end of the plan, and none later."""
OWN = SuggestionOptions(window="14 days", slide="7 days", basket_max=30, ranking=Ranking(top=4, least=2, shrink=3.0))
Suggestions = Options[SuggestionOptions]


def recount() -> Recount:
    return Recount(14 * DAY_MS, 7 * DAY_MS, 60 * MINUTE_MS, 30 * MINUTE_MS, 30, 4, 2, 3.0)


@pytest.fixture
def options(broker: Broker, topic: MakeTopic, tmp_path: Path, name: str) -> Suggestions:
    return options_for(broker, topic(partitions=1), tmp_path, name)


def options_for(broker: Broker, topic: str, place: Path, name: str) -> Suggestions:
    return Options(
        broker.bootstrap,
        (topic,),
        OWN,
        checkpoint=str(place / "checkpoint"),
        output=(str(place / "results"), f"topics:{name}-out"),
    )


def write(broker: Broker, topic: str, values: Sequence[str | bytes], heartbeat: str | None = None, at: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **QUIET})
    for value in values:
        producer.produce(topic, value, partition=at)
    if heartbeat is not None:
        producer.produce(topic, heartbeat, "heartbeat", partition=at)
    assert producer.flush(DEADLINE_S) == 0


def read(texts: Sequence[str]) -> list[Line]:
    return [line for text in texts if (line := understood(text)) is not None]


def in_topic(broker: Broker, options: Suggestions) -> list[tuple[str, int, int, Any]]:
    """Product, end of window, baskets, suggestions of each record, in the order of the topic."""
    found = []
    for message in committed(broker.bootstrap, f"{options.prefixes[0]}-suggestions"):
        row = json.loads(message.value())
        assert message.key().decode() == row["product"]
        listed = [(one["product"], one["baskets"], one["score"]) for one in row["suggestions"]]
        found.append((row["product"], millis(row["window_end"]), row["baskets"], listed))
    return found


def compare(broker: Broker, options: Suggestions, expected: Recount) -> None:
    """Each product and window once, and the newest window last, as a compacted topic keeps it."""
    rows = in_topic(broker, options)
    all_expected = {key: value for batch in expected.found for key, value in batch.items()}
    assert {(product, end): (count, listed) for product, end, count, listed in rows} == all_expected
    assert len(rows) == len(all_expected)
    assert {product: rest for product, *rest in rows} == {
        product: list(rest) for product, rest in last_of_each(expected.found).items()
    }


@pytest.mark.wide
def test_suggestions_are_those_of_a_recount(spark: SparkSession, broker: Broker, options: Suggestions) -> None:
    """Two runs over one checkpoint. The second one also brings lines that are too late for any basket."""
    given = list(lines(PLAN))
    half = len(given) // 2
    expected = recount()
    write(broker, options.input[0], given[:half])
    first = run(spark, SUGGESTION, options)
    expected.batch(read(given[:half]))
    compare(broker, options, expected)

    too_late = [json.dumps(Purchase(START, "user-001", "late", f"tea-{n:02d}", 1).row()) for n in range(3)]
    rest = [*given[half:], *too_late]
    write(broker, options.input[0], rest, END)
    second = run(spark, SUGGESTION, options)
    expected.batch(read(rest), round(datetime.fromisoformat(END).timestamp() * 1000))
    compare(broker, options, expected)
    assert (expected.late, expected.left_out) == (3, PLAN.weeks), "late lines and the robot's baskets"
    broken = [text for text in given if understood(text) is None]
    assert (first.broken + second.broken, len(broken) > 10) == (len(broken), True)
    assert any(product == EVERYONES for product, *_ in in_topic(broker, options))
    ends = {end for _, end, *_ in in_topic(broker, options)}
    assert max(ends) == round((START + timedelta(weeks=5)).timestamp() * 1000)
    assert spark.read.parquet(f"{options.directories[0]}/suggestions").count() == len(in_topic(broker, options))
    assert cleanup_policy(broker, f"{options.prefixes[0]}-suggestions") == "compact"


def cleanup_policy(broker: Broker, topic: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = admin_client(broker.bootstrap)
    return str(admin.describe_configs([resource])[resource].result(DEADLINE_S)["cleanup.policy"].value)


@pytest.mark.wide
def test_users_get_what_others_of_their_taste_buy(
    spark: SparkSession, broker: Broker, options: Suggestions, tmp_path: Path
) -> None:
    """Two groups that have no product in common; nothing that a user has already, and the same from the same lines."""
    bought: dict[str, set[str]] = {}
    texts = []
    for group, number in ((group, number) for group in ("tea", "yarn") for number in range(8)):
        user = f"{group}-lover-{number}"
        bought[user] = {f"{group}-{(number + step) % 8}" for step in range(5)}
        for product in sorted(bought[user]):
            texts.append(json.dumps({"time": START.isoformat(), "user": user, "order": user, "product": product}))
    write(broker, options.input[0], texts)
    found = []
    for turn in range(2):
        place = tmp_path / f"users-{turn}"
        own = replace(OWN, model=ALS, whole=True, factors=Factors(top=3, rank=2))
        run(spark, SUGGESTION, replace(options, own=own, run=Run.WHOLE, checkpoint=None, output=(str(place),)))
        found.append({row.user: row for row in spark.read.parquet(f"{place}/user_suggestions").collect()})
    assert found[0].keys() == bought.keys()
    for user, row in found[0].items():
        names = [one.product for one in row.suggestions]
        assert len(names) == 3
        assert not set(names) & bought[user], "what is bought is not suggested"
        assert {name.split("-")[0] for name in names} == {user.split("-")[0]}
        assert row.products == 5
        scores = [one.score for one in row.suggestions]
        assert scores == sorted(scores, reverse=True)
        assert found[1][user].suggestions == row.suggestions


@pytest.mark.wide
def test_a_whole_run_has_the_last_window_that_is_over(
    spark: SparkSession, broker: Broker, options: Suggestions
) -> None:
    given = list(lines(PLAN))
    write(broker, options.input[0], given)
    own = replace(OWN, whole=True)
    run(spark, SUGGESTION, replace(options, own=own, run=Run.WHOLE, checkpoint=None))
    expected = recount()
    expected.whole(read(given))
    compare(broker, options, expected)


@pytest.mark.wide
def test_a_partition_that_is_added_is_read_and_a_topic_that_was_made_again_is_refused(
    spark: SparkSession, broker: Broker, options: Suggestions
) -> None:
    name = options.input[0]
    given = [text for text in lines(PLAN) if understood(text)]
    write(broker, name, given[:100])
    assert run(spark, SUGGESTION, options).read == 100
    admin = admin_client(broker.bootstrap)
    admin.create_partitions([NewPartitions(name, 2)])[name].result(DEADLINE_S)
    write(broker, name, given[100:110], at=1)
    assert run(spark, SUGGESTION, options).read == 10
    admin.delete_topics([name])[name].result(DEADLINE_S)
    eventually(lambda: name not in admin.list_topics(timeout=DEADLINE_S).topics, "the topic is gone")
    create_topic(broker.bootstrap, name, 2)
    write(broker, name, given)
    with pytest.raises(PipelineError, match=f"The topic {name} was deleted and created again"):
        run(spark, SUGGESTION, replace(options, allow_data_loss=True))
