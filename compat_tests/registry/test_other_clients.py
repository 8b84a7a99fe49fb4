"""Clients of a registry that are not confluent-kafka's: two of Go, one of Node, one of Python; programs in `clients/`.

`wide`, since `make compat` builds and fetches them.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from compat_tests.deps import REGISTRY_CLIENTS, go_registry, node_registry_modules, python_registry_client
from compat_tests.support.tools import run_process

DEADLINE_S = 150.0

pytestmark = pytest.mark.wide


def said(command: list[str], env: dict[str, str] | None = None) -> dict[str, Any]:
    """What a program prints."""
    result = run_process(command, "", check=False, env=env, deadline_s=DEADLINE_S)
    assert result.code == 0, str(result)
    found: dict[str, Any] = json.loads(result.out)
    return found


ID = '{"name":"id","type":"long"}'
WIDER = f'{{"type":"record","name":"Order","fields":[{ID},{{"name":"note","type":"string","default":""}}]}}'


@pytest.mark.parametrize("client", ["franz-go", "confluent"])
def test_clients_of_go(registry: str, client: str) -> None:
    found = said([str(go_registry()), client, registry])
    assert (found["ids"], found["versions"]) == ([1, 2, 1, 3, 4, 5], [1, 2, 1, 1, 1, 1])
    assert found["subjects"] == ["basket", "bill", "json", "orders"]
    assert found["latest"] == WIDER
    assert found["compatible"] == [True, False]
    assert (found["level"], found["deleted"], found["decoded"]) == ("FULL", [1], "seven")
    refusals = {"incompatible": 409, "version": 40402, "id": 40403}
    if client == "franz-go":
        assert (found["references"], found["mode"]) == (["basket"], "READONLY")
        refusals["read-only"] = 42205
    assert found["errors"] == refusals


def test_kafkajs(registry: str) -> None:
    modules = node_registry_modules()
    program = str(REGISTRY_CLIENTS / "node" / "kafkajs_registry.js")
    found = said(["node", program, registry], {"NODE_PATH": str(modules)})
    assert found == {
        "ids": [1, 2, 1, 3, 4, 5],
        "latest": 2,
        "byVersion": 1,
        "bySchema": 2,
        "prefixes": ["0000000002", "0000000003", "0000000004", "0000000005"],
        "decoded": {
            "avro": {"id": 7, "note": "x"},
            "basket": {"first": {"id": 8}},
            "json": {"id": 9},
            "protobuf": {"id": "10"},
        },
        "incompatible": {"name": "ResponseError", "status": 409},
        "missing": {"name": "ResponseError", "status": 404},
        "invalid": {"name": "ConfluentSchemaRegistryValidationError", "status": 0},
        "level": "BACKWARD",
    }


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_python_schema_registry_client(registry: str, kind: str) -> None:
    program = str(REGISTRY_CLIENTS / "python_client.py")
    environment = {"PYTHONPATH": str(python_registry_client())}
    found = said([sys.executable, program, kind, registry], environment)
    assert found == {
        "ids": [1, 2, 1, 3],
        "incompatible": 409,
        "compatible": [True, False],
        "subjects": ["json", "orders", "other"],
        "versions": [1, 2],
        "latest": [2, 2],
        "checked": 1,
        "level": "FULL",
        "prefix": "0000000002",
        "decoded": {"id": 7, "note": "x"},
        "deleted": [1],
    }
