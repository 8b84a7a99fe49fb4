"""All pipelines, unchanged, on a Spark standalone cluster: the same numbers as a recount, from two executors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from compat_tests.conftest import MakeTopic
from compat_tests.deps import ROOT, jars_dir
from compat_tests.spark.pipelines import test_changes, test_ledger, test_logs, test_operations, test_warehouse
from compat_tests.spark.pipelines.activity import test_pipeline
from compat_tests.spark.pipelines.recounts.logs import Recount
from compat_tests.spark.pipelines.standalone import HOME, Standalone, standalone
from compat_tests.spark.pipelines.suggestion import test_suggestion, test_suggestion_once
from compat_tests.spark.pipelines.surviving import END_OF_TIME, command, heartbeat
from compat_tests.support.services import Broker
from compat_tests.support.tools import Result, run_process
from kpybroker.pipelines.ledger import generator
from kpybroker.pipelines.ledger.pipeline import LEDGER
from kpybroker.pipelines.logs.pipeline import LOGS
from kpybroker.pipelines.operations.pipeline import OPERATIONS
from kpybroker.pipelines.suggestion.generator import lines as purchases
from kpybroker.pipelines.suggestion.pipeline import SUGGESTION
from kpybroker.pipelines.warehouse.generator import lines as orders
from kpybroker.pipelines.warehouse.pipeline import WAREHOUSE
from tests.pipelines.changes.generator import Shop
from tests.pipelines.logs.generator import records
from tests.pipelines.operations.generator import lines

pytestmark = pytest.mark.wide
EXECUTORS = 2
RUN_S = 400.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("standalone"), EXECUTORS) as running:
        yield running


def run_there(cluster: Standalone, job: list[str]) -> Result:
    """Run to the end; both executors had a part."""
    before = set(cluster.launched())
    done = run_process([sys.executable, "-m", "kpybroker.pipelines", *job], deadline_s=RUN_S, env=cluster.env)
    assert [count for app, count in cluster.launched().items() if app not in before] == [EXECUTORS]
    return done


def test_balances_of_the_ledger_by_spark_submit(
    broker: Broker, topic: MakeTopic, tmp_path: Path, name: str, cluster: Standalone
) -> None:
    """By the script of two lines in the docs; master and connector are those of spark-submit."""
    options = test_ledger.options_for(broker, topic(partitions=3), tmp_path, name)
    written = generator.write(broker.bootstrap, options.input[0], "bank", generator.transfers(33, 100), seed=33)
    jars = ",".join(str(jar) for jar in sorted(jars_dir("spark-4.0.0").glob("*.jar")))
    submit = [str(HOME / "bin" / "spark-submit"), "--master", cluster.master, "--jars", jars]
    script = str(ROOT / "docs" / "samples" / "spark" / "submit_pipeline.py")
    whole = [*submit, script, *command(LEDGER, replace(options, master="spark://not.used:1", jars="not used"))]
    done = run_process(whole, deadline_s=RUN_S, env={**cluster.env, "PYSPARK_PYTHON": sys.executable})
    assert f"balances: {len(written.balances)} rows" in done.out
    assert test_ledger.balances(broker, options) == written.balances


def on(cluster: Standalone, options: Any) -> Any:
    return replace(options, master=cluster.master)


def test_counts_and_sessions_of_activity(
    spark: SparkSession, broker: Broker, topic: MakeTopic, tmp_path: Path, name: str, cluster: Standalone
) -> None:
    options = test_pipeline.with_topics(test_pipeline.options_for(broker, topic(partitions=2), tmp_path), name)
    given = test_pipeline.some_lines("activity", 31, 0, 300, 400)
    places = test_pipeline.write(broker, options.input[0], given, END_OF_TIME)
    done = run_there(cluster, test_pipeline.arguments(on(cluster, options)))
    assert f"{len(given)} records read, 0 of them broken" in done.out
    expected = test_pipeline.recount()
    expected.batch(test_pipeline.as_events("activity", given, places), test_pipeline.millis(END_OF_TIME))
    test_pipeline.compare(spark, broker, options, expected)


def test_values_and_alerts_of_operations(
    spark: SparkSession, broker: Broker, topic: MakeTopic, tmp_path: Path, name: str, cluster: Standalone
) -> None:
    options = test_operations.options_for(broker, topic(partitions=1), tmp_path, name)
    given = list(lines(test_operations.PLAN))
    test_operations.write(broker, options.input[0], given)
    heartbeat(broker.bootstrap, options.input[0])
    run_there(cluster, command(OPERATIONS, on(cluster, options)))
    test_operations.compare(spark, broker, options, given)


def test_balances_of_the_ledger(
    broker: Broker, topic: MakeTopic, tmp_path: Path, name: str, cluster: Standalone
) -> None:
    options = test_ledger.options_for(broker, topic(partitions=3), tmp_path, name)
    written = generator.write(broker.bootstrap, options.input[0], "bank", generator.transfers(32, 200), seed=32)
    run_there(cluster, command(LEDGER, on(cluster, options)))
    assert test_ledger.balances(broker, options) == written.balances


def test_versions_of_changes(
    spark: SparkSession, broker: Broker, tmp_path: Path, name: str, cluster: Standalone
) -> None:
    source = test_changes.Source(broker, name, Shop(seed=34))
    source.write(source.shop.snapshot(10))
    source.transact(12)
    options = source.options(tmp_path)
    run_there(cluster, test_changes.command(options, "--master", cluster.master))
    assert test_changes.same(spark, options, source.shop) == [source.shop.tx]


def test_events_requests_and_bursts_of_logs(
    spark: SparkSession, broker: Broker, topic: MakeTopic, tmp_path: Path, name: str, cluster: Standalone
) -> None:
    options = test_logs.options_for(broker, topic(partitions=1), tmp_path, name)
    given = list(records(replace(test_logs.PLAN, too_late=0.0)))
    test_logs.write(broker, options.input[0], given)
    heartbeat(broker.bootstrap, options.input[0])
    run_there(cluster, command(LOGS, on(cluster, options)))
    recount = Recount()
    recount.run(test_logs.events_of(given), ends=True)
    test_logs.compare(spark, broker, options, given, recount)
    test_logs.check_hours(spark, options, given)


def test_suggestions(broker: Broker, topic: MakeTopic, tmp_path: Path, name: str, cluster: Standalone) -> None:
    options = test_suggestion.options_for(broker, topic(partitions=1), tmp_path, name)
    given = list(purchases(test_suggestion.PLAN))
    test_suggestion.write(broker, options.input[0], given, test_suggestion.END)
    run_there(cluster, command(SUGGESTION, on(cluster, options), *test_suggestion_once.own(options)))
    expected = test_suggestion.recount()
    expected.batch(test_suggestion.read(given), round(datetime.fromisoformat(test_suggestion.END).timestamp() * 1000))
    test_suggestion.compare(broker, options, expected)


def test_facts_and_hours_of_warehouse(
    spark: SparkSession, broker: Broker, topic: MakeTopic, tmp_path: Path, cluster: Standalone
) -> None:
    options = test_warehouse.options_for(broker, topic(partitions=test_warehouse.PARTITIONS), tmp_path)
    given = list(orders(35, 600, hours=6))
    test_warehouse.send(broker.bootstrap, options.input[0], given)
    run_there(cluster, command(WAREHOUSE, on(cluster, options)))
    test_warehouse.files_are(spark, options.directories[0], test_warehouse.expected(given))
