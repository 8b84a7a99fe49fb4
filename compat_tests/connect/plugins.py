"""What workers find in their `plugin.path`: Debezium's connectors, an Avro converter of the tests, a JDBC source.

Each is a directory with its own jars, as a user unpacks them. The converter is compiled here: Confluent's is not in
Maven's central repository.
"""

from __future__ import annotations

import os
from pathlib import Path

from compat_tests.deps import jars_dir
from compat_tests.support.tools import run_process

JAVA = Path(__file__).with_name("java")
DEBEZIUM, AVRO = "debezium-3.5.0", "avro-1.12.1"
AVRO_CONVERTER = "RegistryAvroConverter"
JDBC_VARIABLE = "KPYBROKER_JDBC_CONNECTOR"
"""Names the directory of Aiven's JDBC connector, unpacked: it is no package of a registry."""


def jdbc_directory() -> Path | None:
    named = os.environ.get(JDBC_VARIABLE)
    return Path(named).resolve() if named else None


def make_plugin_path(directory: Path) -> dict[str, str]:
    """The worker's settings for a new `directory` of all plugins that are here.

    They are found by their manifests, which is quicker than to load all classes. Aiven's 6.10 has none.
    """
    directory.mkdir(parents=True)
    (directory / "debezium").symlink_to(jars_dir(DEBEZIUM).resolve())
    _make_converter(directory / "avro")
    jdbc = jdbc_directory()
    if jdbc is not None:
        (directory / "jdbc").symlink_to(jdbc)
    discovery = "service_load" if jdbc is None else "hybrid_warn"
    return {"plugin.path": str(directory), "plugin.discovery": discovery}


def _make_converter(plugin: Path) -> None:
    """The classes in a jar with the manifest by which workers find them, next to Avro's jars."""
    classes = plugin.parent.with_name("converter-classes")
    sources = map(str, sorted(JAVA.glob("*.java")))
    path = f"{jars_dir(AVRO)}/*:{jars_dir('connect-3.9.1')}/*"
    run_process(["javac", "-Xlint:all", "-Werror", "-cp", path, "-d", str(classes), *sources])
    service = classes / "META-INF" / "services" / "org.apache.kafka.connect.storage.Converter"
    service.parent.mkdir(parents=True)
    service.write_text(f"{AVRO_CONVERTER}\n")
    plugin.mkdir()
    run_process(["jar", "--create", "--file", str(plugin / "converter.jar"), "-C", str(classes), "."])
    for jar in jars_dir(AVRO).glob("*.jar"):
        (plugin / jar.name).symlink_to(jar.resolve())
