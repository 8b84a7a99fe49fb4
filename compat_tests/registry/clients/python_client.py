"""python-schema-registry-client, blocking or asynchronous: `python_client.py sync|async URL`.

What it got is one JSON object on standard output.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from typing import Any

from schema_registry.client import AsyncSchemaRegistryClient, SchemaRegistryClient, errors, schema
from schema_registry.serializers import AsyncAvroMessageSerializer, AvroMessageSerializer

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
WIDER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}
BROKEN = {**ORDER, "fields": [*ORDER["fields"], {"name": "must", "type": "string"}]}
CLOSED = {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": False}


async def awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def main(kind: str, url: str) -> dict[str, Any]:
    client = SchemaRegistryClient(url) if kind == "sync" else AsyncSchemaRegistryClient(url)
    order, wider, broken = (schema.AvroSchema(one) for one in (ORDER, WIDER, BROKEN))
    found: dict[str, Any] = {"ids": []}
    for subject, one in (("orders", order), ("orders", wider), ("other", order), ("json", schema.JsonSchema(CLOSED))):
        found["ids"].append(await awaited(client.register(subject, one)))
    try:
        await awaited(client.register("orders", broken))
    except errors.ClientError as error:
        found["incompatible"] = error.http_code
    found["compatible"] = [await awaited(client.test_compatibility("orders", one)) for one in (wider, broken)]
    found["subjects"] = await awaited(client.get_subjects())
    found["versions"] = await awaited(client.get_versions("orders"))
    latest = await awaited(client.get_schema("orders"))
    found["latest"] = [latest.schema_id, latest.version]
    found["checked"] = (await awaited(client.check_version("orders", order))).version
    await awaited(client.update_compatibility("FULL", "orders"))
    found["level"] = await awaited(client.get_compatibility("orders"))
    serializer = (AvroMessageSerializer if kind == "sync" else AsyncAvroMessageSerializer)(client)
    payload = await awaited(serializer.encode_record_with_schema("orders", wider, {"id": 7, "note": "x"}))
    found["prefix"] = payload[:5].hex()
    found["decoded"] = await awaited(serializer.decode_message(payload))
    found["deleted"] = await awaited(client.delete_subject("other"))
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
