"""What a pipeline must survive, for the tests of each: kills at fixed points, partitions added, a topic made again.

def test_...(spark, own_broker, tmp_path):
    broker = own_broker()
    create_topic(broker.bootstrap, "lines", 2)
    options = Options(broker.bootstrap, ("lines",), LogsOptions(), output=(..., "topics:out"), max_offsets=80, ...)
    ...                                                     # write the input
    survive(broker, command(LOGS, options, "--window", "1 minute"), tmp_path, ["counts", "errors"])
    heartbeat(broker.bootstrap, "lines", 2)
    run(spark, LOGS, options)                               # the rest, from the checkpoint
    ...                                                     # compare with the recount: each row once

    check_changed_topics(spark, broker, LOGS, options, write)
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions
from pyspark.sql import SparkSession

from compat_tests.deps import ROOT, jars_dir
from compat_tests.spark.pipelines.dying import POINTS
from compat_tests.support.quick import DEADLINE_S, QUIET, admin_client, create_topic
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.options import Options, Run
from kpybroker.pipelines.runtime.pipeline import Pipeline
from kpybroker.pipelines.runtime.run import run

START_S = 240.0
END_OF_TIME = "9999-01-01T00:00:00Z"
ENV = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "PYTHONPATH": str(ROOT)}


def command(pipeline: Pipeline[Any], options: Options[Any], *own: str) -> list[str]:
    """The arguments of `python -m kpybroker.pipelines` for `options`; `own` are those of the pipeline itself."""
    found = ["run", pipeline.name, "--bootstrap-servers", options.bootstrap_servers, "--input", ",".join(options.input)]
    found += ["--run", options.run.value, "--every", options.every, "--master", options.master]
    found += [part for one in options.output for part in ("--output", one)]
    found += ["--checkpoint", options.checkpoint] if options.checkpoint is not None else []
    found += ["--max-offsets", str(options.max_offsets)] if options.max_offsets is not None else []
    return [*found, "--jars", options.jars or str(jars_dir("spark-4.0.0")), *own]


def survive(
    broker: Broker, job: Sequence[str], place: Path, results: Sequence[str], points: Sequence[str] = POINTS
) -> None:
    """Kill the driver of `job` at each of `points`, in a batch of one after the other of `results`; the last time with
    the broker, which is started again.

    `results` are those that have rows before the input ends; `points` are those of `dying`. Each run goes on from the
    checkpoint of the one before, and must come to its point.
    """
    turns = max(len(points), len(results))
    for turn, point, result in zip(range(turns), itertools.cycle(points), itertools.cycle(results), strict=False):
        also = broker.kill if turn == turns - 1 else lambda: None
        die(job, point, result, place / f"death-{turn}", also)
    broker.start()


def die(job: Sequence[str], point: str, result: str, files: Path, also: Callable[[], None] = lambda: None) -> None:
    """Run `job` until a batch of `result` is at `point`, and kill the driver there; `also` comes before.

    `files` is the beginning of the names of the files that this needs.
    """
    log, there = files.with_suffix(".log"), files.with_suffix(".there")
    program = [sys.executable, "-m", "compat_tests.spark.pipelines.dying", point, result, str(there), *job]
    with log.open("wb") as out:
        env = {**os.environ, **ENV}
        process = subprocess.Popen(
            program, stdout=out, stderr=subprocess.STDOUT, cwd=files.parent, env=env, process_group=0
        )
    try:

        def reached() -> bool:
            if there.exists():
                return True
            if process.poll() is not None:
                raise RuntimeError(f"ended before a batch of {result} was at '{point}':\n{log.read_text()[-4000:]}")
            return False

        eventually(reached, f"a batch of {result} at '{point}'", START_S)
        also()
    finally:
        # the JVM is in the group too; the processes of Spark's workers end with it
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()


def heartbeat(bootstrap: str, topic: str, partitions: int = 1, time: str = END_OF_TIME) -> None:
    """Advance event time to `time` by a heartbeat in each partition; by default past the end of all windows."""
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    for partition in range(partitions):
        producer.produce(topic, time, "heartbeat", partition=partition)
    assert producer.flush(DEADLINE_S) == 0


def check_changed_topics(
    spark: SparkSession, broker: Broker, pipeline: Pipeline[Any], options: Options[Any], write: Callable[[int], int]
) -> None:
    """Partitions that are added to the first topic of `options.input` are read; the topic made again is an error.

    `write(partition)` writes records to a partition and returns how many. The topics are empty at first.
    """
    assert options.run is Run.AVAILABLE_NOW
    name = options.input[0]
    admin = admin_client(broker.bootstrap)
    count = len(admin.list_topics(name, timeout=DEADLINE_S).topics[name].partitions)
    written = sum(write(partition) for partition in range(count))
    assert run(spark, pipeline, options).read == written > 0
    admin.create_partitions([NewPartitions(name, count + 1)])[name].result(DEADLINE_S)
    written = write(count)
    assert run(spark, pipeline, options).read == written > 0
    admin.delete_topics([name])[name].result(DEADLINE_S)
    eventually(lambda: name not in admin.list_topics(timeout=DEADLINE_S).topics, "the topic is gone")
    create_topic(broker.bootstrap, name, count + 1)
    for partition in range(count + 1):
        write(partition)
    # also where nothing else would stop it
    with pytest.raises(PipelineError, match=f"The topic {name} was deleted and created again"):
        run(spark, pipeline, replace(options, allow_data_loss=True))
