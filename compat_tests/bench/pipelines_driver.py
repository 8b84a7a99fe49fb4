"""A driver that is measured: it runs a pipeline twice in one Spark, and a line starts the run that counts.

    python -m compat_tests.bench.pipelines_driver NAME BOOTSTRAP FEW MANY MASTER RECORDS PLACE [options of the pipeline]

FEW and MANY are topics; that of FEW, read first, compiles. It writes `warm`, waits for a line, reads MANY in
batches of RECORDS at most, writes what it did as JSON, and ends with the next line. Results go to topics.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

from compat_tests.deps import jars_dir
from kpybroker.pipelines.catalogue import PIPELINES
from kpybroker.pipelines.runtime.messages import Messages
from kpybroker.pipelines.runtime.options import Options, parse
from kpybroker.pipelines.runtime.run import run
from kpybroker.pipelines.runtime.session import open_spark


def main(name: str, bootstrap: str, few: str, many: str, master: str, records: int, place: Path, *own: str) -> None:
    """`records` are those of a batch at most."""
    needed = ["--bootstrap-servers", bootstrap, "--master", master, "--max-offsets", str(records), "--input", many]
    needed += ["--output", "topics:never", "--checkpoint", "never"]
    options = parse(PIPELINES[name], [*needed, *own])

    def of_run(topic: str) -> Options[Any]:
        unique = uuid.uuid4().hex[:8]
        return replace(options, input=(topic,), output=(f"topics:{topic}-{unique}",), checkpoint=str(place / unique))

    spark = open_spark(master, str(jars_dir("spark-4.0.0")), None, Messages(sys.stderr))
    try:
        run(spark, PIPELINES[name], of_run(few))
        print("warm", flush=True)
        sys.stdin.readline()
        began = time.monotonic()
        report = run(spark, PIPELINES[name], of_run(many))
        done = {"seconds": time.monotonic() - began, "read": report.read, "rows": sum(report.rows.values())}
        print(json.dumps(done), flush=True)
        sys.stdin.readline()
    finally:
        spark.stop()


if __name__ == "__main__":
    of_pipeline, address, first, second, cluster, size, directory, *more = sys.argv[1:]
    main(of_pipeline, address, first, second, cluster, int(size), Path(directory), *more)
