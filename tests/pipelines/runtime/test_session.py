"""The Kafka connector of a Spark session, its Java and its master."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.session import check_java, check_master, connector, jar_files


def test_jars_are_a_directory_or_files(tmp_path: Path) -> None:
    one, two = tmp_path / "a.jar", tmp_path / "b.jar"
    for file in (one, two, tmp_path / "notes.txt"):
        file.touch()
    assert jar_files(str(tmp_path)) == [str(one), str(two)]
    assert jar_files(f"{two},{tmp_path}/a*.jar") == [str(two), str(one)]
    assert connector(str(tmp_path), None) == {"spark.jars": f"{one},{two}"}
    with pytest.raises(PipelineError, match="No jar files in"):
        jar_files(str(tmp_path / "none"))


def test_without_jars_the_connector_has_the_version_of_pyspark() -> None:
    pyspark = pytest.importorskip("pyspark")
    assert connector(None, "g:n:1") == {"spark.jars.packages": "g:n:1"}
    expected = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    assert connector(None, None) == {"spark.jars.packages": expected}


@pytest.mark.parametrize(
    ("said", "version"), [('java version "1.8.0_392"', "8"), ('NOTE: x\nopenjdk version "11.0.22" 2024-01-16', "11")]
)
def test_a_java_that_is_too_old_is_refused(
    said: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java(tmp_path, said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match=f"needs Java 17, and {java} is Java {version}.\nfix: Install Java 17"):
        check_java()


@pytest.mark.parametrize("said", ['openjdk version "17.0.13" 2024-10-15', 'openjdk version "21" 2023-09-19', "Java"])
def test_a_java_that_is_new_enough_or_unknown_is_not(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check_java()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME")
    check_java()


def fake_java(home: Path, said: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    java.chmod(0o755)
    return java


def test_no_java_is_reported_with_where_it_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match=f"JAVA_HOME is {tmp_path}, where "):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PipelineError, match="Spark needs Java, which is not installed"):
        check_java()


def test_a_master_that_does_not_respond_is_reported_before_spark_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(PipelineError, match=f"No Spark master responds .127.0.0.1:{port}: Connection refused"):
        check_master(f"spark://127.0.0.1:{port}")
    with pytest.raises(PipelineError, match=r"No Spark master responds .nowhere: .*\nfix: .* correct --master"):
        check_master("spark://nowhere")
    check_master("local[2]")
