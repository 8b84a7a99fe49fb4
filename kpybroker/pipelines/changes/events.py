"""Records of Debezium for PostgreSQL as events: a change of a row, or the end of a transaction.

An event has the columns of `EVENT`. `after` has each value as text, as JSON writes it; `columns` says in JSON what the
table's columns were then, as Connect's schemas do (`columns.columns_of` reads it). Tombstones, begins of transactions
and logical messages are no events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EVENT = (
    "topic string, partition int, offset bigint, table string, key string, op string, commit bigint, lsn bigint, "
    "tx bigint, snapshot string, columns string, after map<string,string>, counts map<string,bigint>"
)
"""`commit` is the position of the commit before the event's own, null in a snapshot and until there was one; `lsn` that
of the change, or of the commit for an end; `counts` are the events of a transaction by table."""
EVENT_COLUMNS = tuple(one.split()[0] for one in EVENT.split(", "))
END = "END"
TRUNCATE = "t"
WITH_ROW = ("c", "u", "r")
OPS = (*WITH_ROW, "d", TRUNCATE, "m")
ENVELOPE = (
    "op string, after string, "
    "source struct<schema:string,table:string,lsn:bigint,txId:bigint,sequence:string,snapshot:string>, "
    "status string, id string, event_count bigint, "
    "data_collections array<struct<data_collection:string,event_count:bigint>>"
)
WRAPPED = "schema struct<fields:array<struct<field:string,fields:string>>>, payload string"


def decoded(records: DataFrame) -> DataFrame:
    """Records in JSON, with their schemas or without, as event columns, and `reason` for those that are broken."""
    from pyspark.sql import functions as F

    text = records["value"].cast("string")
    key_text = records["key"].cast("string")
    key = F.from_json(key_text, "schema string, payload string")
    wrapped = F.from_json(text, WRAPPED)
    opened = records.select(
        *("topic", "partition", "offset", "key", "value"),
        F.when(key["schema"].isNotNull(), key["payload"]).otherwise(key_text).alias("key_json"),
        F.filter(wrapped["schema"]["fields"], lambda field: field["field"] == "after").alias("form"),
        F.from_json(F.coalesce(wrapped["payload"], text), ENVELOPE).alias("envelope"),
    )
    after = F.col("envelope.after")
    names = F.transform(
        F.json_object_keys(after), lambda name: F.struct(name.alias("field"), F.lit("string").alias("type"))
    )
    with_row = opened.select(
        *("topic", "partition", "offset", "key", "value", "key_json", "envelope"),
        F.coalesce(F.try_element_at("form", F.lit(1))["fields"], F.to_json(names)).alias("columns"),
        F.from_json(after, "map<string,string>").alias("after"),
    )
    return described(with_row)


def described(opened: DataFrame) -> DataFrame:
    """Event columns (their key is `event_key`) and `reason`, of `key_json`, `columns`, `after` and an `envelope`."""
    from pyspark.sql import functions as F

    envelope, source = F.col("envelope"), F.col("envelope.source")
    is_end = F.coalesce(envelope["status"] == END, F.lit(False))
    is_key = F.size(F.json_object_keys("key_json")) > 0
    sequence = F.from_json(source["sequence"], "array<string>")
    parts = F.split(envelope["id"], ":")
    collections = envelope["data_collections"]
    counts = F.map_from_entries(
        F.transform(
            F.coalesce(collections, F.array()), lambda one: F.struct(one["data_collection"], one["event_count"])
        )
    )
    return opened.select(
        *("topic", "partition", "offset", "key", "value"),
        F.concat_ws(".", source["schema"], source["table"]).alias("table"),
        F.when(is_key, F.col("key_json")).alias("event_key"),
        F.when(is_end, F.lit(END)).otherwise(envelope["op"]).alias("op"),
        F.try_element_at(sequence, F.lit(1)).try_cast("bigint").alias("commit"),
        F.when(is_end, F.try_element_at(parts, F.lit(2)).try_cast("bigint")).otherwise(source["lsn"]).alias("lsn"),
        F.when(is_end, F.try_element_at(parts, F.lit(1)).try_cast("bigint")).otherwise(source["txId"]).alias("tx"),
        source["snapshot"].alias("snapshot"),
        "columns",
        "after",
        F.when(is_end, counts).alias("counts"),
        _reason(envelope, is_key).alias("reason"),
    )


def _reason(envelope: Column, is_key: Column) -> Column:
    from pyspark.sql import functions as F

    source, op = envelope["source"], envelope["op"]
    is_id = F.coalesce(envelope["id"].rlike(r"^\d+:\d+$"), F.lit(False))
    columns = F.col("columns")
    listed = F.from_json(columns, "array<struct<field:string>>")
    is_listed = F.coalesce(~F.exists(listed, lambda one: one["field"].isNull()), F.lit(False))
    is_place = source["schema"].isNotNull() & source["table"].isNotNull() & source["lsn"].isNotNull()
    return (
        F.when(F.col("value").isNull() | F.coalesce(envelope["status"] == "BEGIN", F.lit(False)), F.lit(None))
        .when(F.coalesce(envelope["status"] == END, F.lit(False)), F.when(~is_id, F.lit("an END without txId:lsn")))
        .when(op.isNull(), F.lit("not a change of Debezium's: no op"))
        .when(~op.isin(*OPS), F.lit(f"op is none of {', '.join(OPS)}"))
        .when(op == "m", F.lit(None))
        .when(~is_place, F.lit("no schema, table or lsn in source"))
        .when(op.isin(*WITH_ROW) & F.col("after").isNull(), F.lit("no row after the change"))
        .when(columns.isNotNull() & ~is_listed, F.lit("no columns in the schema of the row"))
        .when((op != TRUNCATE) & ~F.coalesce(is_key, F.lit(False)), F.lit("no key: the table has no primary key"))
    )


def events(rows: DataFrame) -> DataFrame:
    """The events of `described` rows that are not broken."""
    from pyspark.sql import functions as F

    chosen = rows.where(F.coalesce(F.col("op").isin(END, *WITH_ROW, "d", TRUNCATE), F.lit(False)))
    return chosen.drop("key").withColumnRenamed("event_key", "key").select(*EVENT_COLUMNS)
