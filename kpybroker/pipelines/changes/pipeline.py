"""`Changes`: topics of Debezium for PostgreSQL to tables that equal the source's, at every checkpoint.

The tables are in the directory of `--output` (`versions`); `rows` has each key that a batch has changed, for a topic
that is compacted.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.changes import avro, events
from kpybroker.pipelines.changes.fold import Fold
from kpybroker.pipelines.changes.versions import FOLDER
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime import arguments as is_a
from kpybroker.pipelines.runtime import avro as registry
from kpybroker.pipelines.runtime.options import TOPICS
from kpybroker.pipelines.runtime.pipeline import REASON, Pipeline, Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERSIONS_MIN = 2
"""A batch that is done again needs the version before its own."""


@dataclass(frozen=True, slots=True)
class ChangesOptions:
    """The help of the command line explains each."""

    value_format: str = "json"
    schema_registry: str | None = None
    transactions: str | None = None
    buckets: int = 8
    versions: int = 5


class Changes(Pipeline[ChangesOptions]):
    """The pipeline `changes`."""

    name = "changes"
    summary = "Change data of PostgreSQL by Debezium to tables that equal the source's at every checkpoint."
    keys = {"rows": "key"}
    values = {"rows": "row"}
    folders = (FOLDER,)
    source = {"kafka.isolation.level": "read_committed"}

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The form of records, and how the tables are kept."""
        registry.add_arguments(parser)
        group = parser.add_argument_group("change data")
        text = "of --input, the one with the ends of transactions: only whole ones are in the tables"
        group.add_argument("--transactions", type=is_a.topic, metavar="TOPIC", help=text)
        group.add_argument("--buckets", default=8, type=is_a.positive, metavar="N", help="parts of each table (8)")
        text = "how many versions of the tables are kept, at least 2 (5)"
        group.add_argument("--versions", default=5, type=is_a.positive, metavar="N", help=text)

    def own(self, values: Mapping[str, Any]) -> ChangesOptions:
        """See `Pipeline`. Raises `PipelineError` for what does not fit to input and output."""
        names = ("value_format", "schema_registry", "transactions", "buckets", "versions")
        own = ChangesOptions(**{name: values[name] for name in names})
        if len([one for one in values["output"] if not one.startswith(TOPICS)]) != 1:
            raise PipelineError("The tables need one directory.", "Give --output DIR once; topics may be given too.", 2)
        if own.transactions is not None and own.transactions not in values["input"]:
            cause = f"The topic {own.transactions} of --transactions is not read."
            raise PipelineError(cause, "Add it to --input.", 2)
        return own

    def contradictions(self, own: ChangesOptions) -> Sequence[tuple[str, str]]:
        """See `Pipeline`."""
        found = list(registry.contradictions(own.value_format, own.schema_registry))
        if own.versions < VERSIONS_MIN:
            found.append(("One version is not enough: a batch may be done again.", "Give --versions 2 or more."))
        return found

    def kept(self, own: ChangesOptions) -> Mapping[str, object]:
        """See `Pipeline`."""
        return {"buckets": own.buckets, "transactions": own.transactions}

    def parse(self, records: DataFrame, own: ChangesOptions) -> DataFrame:
        """JSON: event columns. Avro is read in each batch, since its schemas are not known before."""
        from pyspark.sql import functions as F

        if own.schema_registry is not None:
            avro.check_from_avro()
            registry.check(own.schema_registry)
            rows = records.select(
                "topic", "partition", "offset", "key", "value", F.lit(None).cast("string").alias(REASON)
            )
        else:
            rows = events.decoded(records)
        return rows.withColumn("heartbeat", F.lit(False))

    def queries(self, rows: DataFrame, own: ChangesOptions) -> Sequence[Query]:
        """One, which keeps the tables."""
        schemas = avro.Registry(own.schema_registry) if own.schema_registry is not None else None
        fold = Fold(schemas, own.transactions is not None, own.buckets, own.versions)
        return [Query("rows", rows, fold=fold)]


CHANGES = Changes()
