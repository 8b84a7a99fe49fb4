"""A driver that is measured: one Spark, in which a pipeline runs once for each line that it reads.

    python -m compat_tests.bench.pipelines.driver MASTER RECORDS PLACE

Each line of standard input is the name of a pipeline, a bootstrap address and a topic, which is read in batches of
RECORDS at most. What was done is a line of JSON: `seconds`, `read`, `rows`. Results go to topics, and to a
directory where a pipeline keeps something there. `source` is no pipeline: its records are only read.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from compat_tests.bench.pipelines.input import INPUTS, SOURCE
from compat_tests.deps import jars_dir
from kpybroker.pipelines.catalogue import PIPELINES
from kpybroker.pipelines.runtime.messages import Messages
from kpybroker.pipelines.runtime.options import parse
from kpybroker.pipelines.runtime.run import run
from kpybroker.pipelines.runtime.session import open_spark


def _read(spark: SparkSession, bootstrap: str, topic: str) -> dict[str, float]:
    """Spark's source alone: all columns of all records, which go nowhere."""
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    began = time.monotonic()
    frame = spark.read.format("kafka").options(**options).load()
    seen = Observation()
    frame.observe(seen, F.count("*").alias("read")).write.format("noop").mode("overwrite").save()
    return {"seconds": time.monotonic() - began, "read": seen.get["read"], "rows": 0}


def main(master: str, records: str, place: str) -> None:
    """Until the input ends."""
    needed = ["--bootstrap-servers", "127.0.0.1:1", "--master", master, "--max-offsets", records, "--input", "none"]
    needed += ["--output", "topics:none", "--checkpoint", "none"]
    spark = open_spark(master, str(jars_dir("spark-4.0.0")), None, Messages(sys.stderr))
    try:
        for line in sys.stdin:
            name, bootstrap, topic = line.split()
            if name == SOURCE:
                print(json.dumps(_read(spark, bootstrap, topic)), flush=True)
                continue
            unique = uuid.uuid4().hex[:8]
            folder = ["--output", f"{place}/{unique}-files"] if PIPELINES[name].folders else []
            options = parse(PIPELINES[name], [*needed, *folder, *INPUTS[name].options])
            chosen = replace(options, bootstrap_servers=bootstrap, input=(topic,))
            output = (f"topics:{topic}-{unique}", *folder[1:])
            chosen = replace(chosen, output=output, checkpoint=str(Path(place) / unique))
            began = time.monotonic()
            report = run(spark, PIPELINES[name], chosen)
            done = {"seconds": time.monotonic() - began, "read": report.read, "rows": sum(report.rows.values())}
            print(json.dumps(done), flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
