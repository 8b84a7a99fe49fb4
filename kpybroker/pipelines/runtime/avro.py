"""Values as JSON text, whether they are JSON or Avro with a schema of a registry, so that a pipeline parses one thing.

An Avro value is what Confluent's serializers write: a zero byte, the id of the writer's schema, the data. The data is
read with the writer's own schema, by fastavro in Spark's Python processes. Spark's `from_avro` is not used: it wants
the writer's schema when the query is planned, and a run that follows a topic meets schemas that are registered later.

Schemas evolve by the names of fields: a pipeline ignores a field that it does not know, and a field that is missing is
null, as in JSON. Defaults of a reader's schema and aliases are not applied.

A value that cannot be read is a dead letter. A registry that does not respond ends the run, since no record is wrong.
"""

from __future__ import annotations

import argparse
import base64
import json
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.event_time import is_heartbeat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMATS = ("json", "avro")
TEXT, UNREADABLE = "text", "unreadable"
"""The columns that `as_text` adds."""
HEADER_BYTES = 5
RESPONSE_SECONDS_MAX = 10.0
TRIES, PAUSE_S = 5, 1.0
UNKNOWN_KEPT_S = 30.0
SCHEMAS_MAX = 1000
NO_RESPONSE = "The schema registry does not respond, or refuses"
FIX = "Start it, or correct --schema-registry; the next run continues from the checkpoint."

_schemas: dict[tuple[str, int], Any] = {}
"""Parsed schemas of this process by registry and id; at most `SCHEMAS_MAX`."""
_unknown: dict[tuple[str, int], float] = {}
"""Ids that a registry did not have, and until when it is not asked again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a pipeline that reads both formats."""
    group = parser.add_argument_group("format of values")
    group.add_argument("--value-format", default="json", choices=FORMATS, help="of the records (json)")
    group.add_argument(
        "--schema-registry", metavar="URL", help="where the schemas of Avro are: http://[USER:PASSWORD@]HOST:PORT"
    )


def contradictions(value_format: str, registry: str | None) -> Sequence[tuple[str, str]]:
    """(cause, fix) of the two options."""
    found = []
    if value_format == "avro" and registry is None:
        found.append(("Avro needs the schemas of its writers.", "Give --schema-registry URL."))
    if value_format != "avro" and registry is not None:
        found.append(("--schema-registry is for Avro.", "Give --value-format avro, or leave it out."))
    if registry is not None and (urlsplit(registry).scheme not in ("http", "https") or not urlsplit(registry).hostname):
        found.append((f"'{registry}' is not the address of a registry.", "Write http://HOST:PORT."))
    return found


def as_text(records: DataFrame, registry: str | None) -> DataFrame:
    """`records` with `text`, the value as JSON, and `unreadable`, why there is none.

    Without `registry` values are JSON already. A heartbeat is text in both formats. Raises `PipelineError` where the
    registry does not respond.
    """
    from pyspark.sql import functions as F

    text = records["value"].cast("string")
    if registry is None:
        return records.withColumns({TEXT: text, UNREADABLE: F.lit(None).cast("string")})
    if find_spec("fastavro") is None:
        raise PipelineError("Avro needs fastavro.", "pip install 'kpybroker[spark]'")
    check(registry)

    @F.udf("text string, unreadable string")
    def read(value: bytearray | None) -> tuple[str | None, str | None]:
        return decode(None if value is None else bytes(value), registry)

    # once for each record: Spark would copy a deterministic function into each filter above
    found = F.when(~is_heartbeat(records), read.asNondeterministic()(records["value"]))
    decoded = records.withColumn("_decoded", found)
    return decoded.withColumns(
        {
            TEXT: F.coalesce(F.col("_decoded.text"), F.when(is_heartbeat(records), text)),
            UNREADABLE: F.col("_decoded.unreadable"),
        }
    ).drop("_decoded")


def check(registry: str) -> None:
    """Raise `PipelineError` where nothing at `registry` responds as a schema registry does."""
    try:
        _get(registry, "/subjects")
    except (OSError, ValueError) as error:
        raise _down(registry, error) from None


def decode(value: bytes | None, registry: str) -> tuple[str | None, str | None]:
    """An Avro value as (JSON, None), or (None, why it cannot be read). Raises `PipelineError` where no schema comes."""
    import fastavro

    if value is None or len(value) < HEADER_BYTES or value[0] != 0:
        return None, "not Avro with the id of a schema"
    schema_id = int.from_bytes(value[1:HEADER_BYTES], "big")
    schema = _schema(registry, schema_id)
    if schema is None:
        return None, f"the schema registry has no Avro schema {schema_id}"
    data = BytesIO(value[HEADER_BYTES:])
    try:
        decoded = fastavro.schemaless_reader(data, schema, None)
        if data.read(1):
            return None, f"more bytes than schema {schema_id} has"
        return json.dumps(decoded, default=_plain), None
    except Exception:  # damaged data fails in many ways, none of which may stop the job
        return None, f"not the data of schema {schema_id}"


def _plain(value: object) -> str:
    """Logical types as JSON has them: times in ISO 8601, decimals as digits, bytes in base64."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


def _schema(registry: str, schema_id: int) -> Any:
    """The parsed schema; None where the registry has none of that id, or one of another type."""
    place = (registry, schema_id)
    if place in _schemas:
        return _schemas[place]
    if _unknown.get(place, 0.0) > time.monotonic():
        return None
    found = _fetch(registry, schema_id)
    if found is None:
        _keep(_unknown, place, time.monotonic() + UNKNOWN_KEPT_S)
        return None
    return _keep(_schemas, place, found)


def _keep(cache: dict[tuple[str, int], Any], place: tuple[str, int], value: Any) -> Any:
    if len(cache) >= SCHEMAS_MAX:
        cache.clear()
    cache[place] = value
    return value


def registered(registry: str, schema_id: int) -> Any:
    """What the registry says of an Avro schema; None where it has none of that id, or one of another type.

    It may be away for a few seconds. Raises `PipelineError`.
    """
    found = _patient(registry, f"/schemas/ids/{schema_id}")
    return found if found is not None and found.get("schemaType", "AVRO") == "AVRO" else None


def _patient(registry: str, path: str) -> Any:
    for tried in range(1, TRIES + 1):
        try:
            return _get(registry, path)
        except HTTPError as error:
            if error.code == 404:
                return None
            failure: Exception = error
        except (OSError, ValueError) as error:
            failure = error
        if tried < TRIES:
            time.sleep(PAUSE_S)
    raise _down(registry, failure)


def _fetch(registry: str, schema_id: int) -> Any:
    import fastavro

    found = registered(registry, schema_id)
    if found is None:
        return None
    return fastavro.parse_schema(json.loads(found["schema"]), named_schemas=_references(registry, found))


def _references(registry: str, schema: Any) -> dict[str, Any]:
    """The types that a schema takes from others."""
    import fastavro

    named: dict[str, Any] = {}
    for one in schema.get("references") or ():
        other = _patient(registry, f"/subjects/{quote(one['subject'], safe='')}/versions/{one['version']}")
        named |= _references(registry, other)
        fastavro.parse_schema(json.loads(other["schema"]), named_schemas=named)
    return named


def _get(registry: str, path: str) -> Any:
    """Raises OSError (HTTPError for a status), and ValueError for what is not JSON."""
    parts = urlsplit(registry)
    place = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/") + path, "", ""))
    request = Request(place, headers={"Accept": "application/vnd.schemaregistry.v1+json"})
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        request.add_header("Authorization", f"Basic {base64.b64encode(login).decode()}")
    with urlopen(request, timeout=RESPONSE_SECONDS_MAX) as page:
        return json.loads(page.read())


def _down(registry: str, error: Exception) -> PipelineError:
    """Without the password that the address may have."""
    reason = getattr(error, "reason", None) or error
    parts = urlsplit(registry)
    place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return PipelineError(f"{NO_RESPONSE} ({place}: {getattr(reason, 'strerror', None) or reason}).", FIX)
