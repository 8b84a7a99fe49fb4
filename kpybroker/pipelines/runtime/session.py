"""The Spark session of a run: its master, its Kafka connector, and logging of errors only."""

from __future__ import annotations

import glob
import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kpybroker.pipelines.errors import PipelineError, not_started
from kpybroker.pipelines.runtime.arguments import unreachable
from kpybroker.pipelines.runtime.messages import Messages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
JAVA_LEAST = 17
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit for its program: master and connector are then its."""
STANDALONE = "spark://"
JVM_END_SECONDS_MAX = 5.0
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

JOB_SETTINGS = {
    # a database may have columns whose names differ in nothing else
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    "spark.sql.streaming.stopTimeout": "30s",
    # windows and sessions that are open are on disk, not in the memory of the JVM
    "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
}
"""Settings that the transformations need in any session."""
LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


def jar_files(text: str) -> list[str]:
    """The files of a directory, a glob or a list. Raises `PipelineError` if there are none."""
    found: list[str] = []
    for one in text.split(","):
        pattern = str(Path(one) / "*.jar") if Path(one).is_dir() else one
        files = sorted(glob.glob(pattern))
        if not files:
            raise PipelineError(f"No jar files in '{one}'.", "Correct --jars: a directory, or files with commas.", 2)
        found += files
    return found


def connector(jars: str | None, packages: str | None) -> dict[str, str]:
    """The setting that gives Spark its Kafka connector; by default the one of the version of pyspark."""
    if jars is not None:
        return {"spark.jars": ",".join(os.path.abspath(file) for file in jar_files(jars))}
    if packages is not None:
        return {"spark.jars.packages": packages}
    import pyspark

    return {"spark.jars.packages": f"{CONNECTOR}:{pyspark.__version__}"}


def check_java() -> None:
    """Raise `PipelineError` without a Java that Spark runs on: it would end with the stack of its launcher."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    found = shutil.which(java)
    if found is None:
        missing = (
            f"JAVA_HOME is {home}, where there is no Java." if home else "Spark needs Java, which is not installed."
        )
        raise PipelineError(missing, f"Install Java {JAVA_LEAST}, or set JAVA_HOME to where it is.")
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is not None and int(version[1]) < JAVA_LEAST:
        cause = f"Spark needs Java {JAVA_LEAST}, and {found} is Java {version[1]}."
        raise PipelineError(cause, f"Install Java {JAVA_LEAST}, or set JAVA_HOME to where it is.")


def check_master(master: str, timeout_s: float = 5.0) -> None:
    """Raise `PipelineError` if no master of a standalone cluster accepts a connection; Spark would try for a minute."""
    if not master.startswith(STANDALONE):
        return
    reasons = unreachable(master.removeprefix(STANDALONE), timeout_s)
    if reasons:
        raise PipelineError(f"No Spark master responds ({'; '.join(reasons)}).", "Start it, or correct --master.")


def open_spark(master: str, jars: str | None, packages: str | None, messages: Messages | None = None) -> SparkSession:
    """A new session, which the caller stops; its JVM writes to `messages`, unless it is that of spark-submit.

    Raises `PipelineError` without Java or pyspark, and where Spark does not start.
    """
    submitted = SUBMITTED in os.environ
    if not submitted:
        check_java()
        check_master(master)
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise PipelineError("pyspark is not installed.", "pip install 'kpybroker[spark]'") from None
    # Spark's workers are the same Python, with the same packages
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("kpybroker pipelines")
    settings = JOB_SETTINGS
    if not submitted:
        builder = builder.master(master)
        local = LOCAL_SETTINGS if master.startswith("local") else {}
        if local:
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings = {**local, **JOB_SETTINGS, **connector(jars, packages)}
    for key, value in settings.items():
        builder = builder.config(key, value)
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    kept = messages or Messages(sys.stderr)
    try:
        with kept.of_a_start():
            spark: SparkSession = builder.getOrCreate()
    except (PySparkException, Py4JJavaError) as error:
        kept.wait(JVM_END_SECONDS_MAX)
        raise not_started(f"{kept.text()}\n{error}") from error
    spark.sparkContext.setLogLevel("ERROR")
    # it logs what a function of a batch raises, which ends the run as its error
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    return spark
