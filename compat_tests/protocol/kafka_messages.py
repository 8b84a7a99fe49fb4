"""Kafka's definitions and classes, out of its jars: what our specs and our codec are held against."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compat_tests.deps import jars_dir

ROUND_TRIP = Path(__file__).with_name("RoundTrip.java")
JAVA_SECONDS_MAX = 240

# jar, and the package of the classes generated from the definitions in it
_JARS = {
    "kafka-clients": "org.apache.kafka.common.message",
    "kafka-group-coordinator": "org.apache.kafka.coordinator.group.generated",
    "kafka-transaction-coordinator": "org.apache.kafka.coordinator.transaction.generated",
}


def kafka_jars() -> Path:
    """The directory with Kafka 3.9.1's jars; says what to run when they are not there."""
    jars = jars_dir("kafka-3.9.1")
    if not any(jars.glob("kafka-clients-*.jar")):
        raise FileNotFoundError(f"no Kafka jars in {jars}: run `python compat_tests/deps.py jars`")
    return jars


def definitions() -> dict[str, dict[str, Any]]:
    """Every message definition by name, as Kafka's JSON says it, with `javaClass` added."""
    found = {}
    for jar_name, package in _JARS.items():
        with zipfile.ZipFile(next(kafka_jars().glob(f"{jar_name}-[0-9]*.jar"))) as jar:
            for entry in jar.namelist():
                if entry.startswith("common/message/") and entry.endswith(".json"):
                    definition = _parse(jar.read(entry).decode())
                    name = definition["name"]
                    is_api = definition["type"] in ("request", "response")
                    definition["javaClass"] = f"{package}.{name}{'Data' if is_api else ''}"
                    found[name] = definition
    return found


def _parse(text: str) -> dict[str, Any]:
    """JSON with whole-line comments."""
    lines = (re.sub(r"^\s*//.*$", "", line) for line in text.splitlines())
    result: dict[str, Any] = json.loads("\n".join(lines))
    return result


def ask_java(commands: Iterable[str]) -> list[str]:
    """The answers of RoundTrip.java, one per command."""
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_jars()}/*", str(ROUND_TRIP)],
        input="\n".join(commands) + "\n",
        capture_output=True,
        text=True,
        timeout=JAVA_SECONDS_MAX,
        check=True,
    )
    return done.stdout.splitlines()
