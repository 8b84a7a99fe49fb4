"""The samples of docs/guides/schema-registry.md do what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.deps import jars_dir
from compat_tests.support.services import Broker
from kpybroker.registry.api.users import is_right, load_users
from tests.support.programs.samples import run_sample


def test_an_order_goes_through_with_its_schema(kafka: Broker, registry: str, tmp_path: Path) -> None:
    places = {"127.0.0.1:9092": kafka.bootstrap, "http://127.0.0.1:8081": registry}
    out = run_sample("registry/orders.py", tmp_path, places)
    assert out == "{'id': 7, 'note': 'in a hurry'}\n"


@pytest.mark.wide
def test_spark_shows_orders_as_a_table(kafka: Broker, registry: str, tmp_path: Path) -> None:
    places = {"127.0.0.1:9092": kafka.bootstrap, "http://127.0.0.1:8081": registry, '"orders"': '"spark-orders"'}
    places["orders-value"] = "spark-orders-value"
    run_sample("registry/orders.py", tmp_path, {**places, "readers": "spark-readers"})
    jars = [jar for name in ("spark-4.0.0", "spark-avro-4.0.0") for jar in sorted(jars_dir(name).glob("*.jar"))]
    packages = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0,org.apache.spark:spark-avro_2.13:4.0.0"
    connector = {"spark.jars.packages": "spark.jars", packages: ",".join(map(str, jars))}
    # one core and no pages of its own: what is shown is the same, in half the time
    connector |= {"local[2]": "local[1]", ".getOrCreate()": '.config("spark.ui.enabled", "false").getOrCreate()'}
    out = run_sample("registry/read_orders.py", tmp_path, {**places, **connector})
    assert "|  7|in a hurry|" in out


def test_curl_registers_asks_and_deletes(registry: str, tmp_path: Path) -> None:
    out = run_sample("registry/rest.sh", tmp_path, {"http://127.0.0.1:8081": registry})
    assert out.startswith('{"id":1,')
    assert '"is_compatible":false' in out
    assert '["clicks-value"]' in out
    assert '{"compatibility":"FULL_TRANSITIVE"}' in out
    assert out.endswith("[1][1]")


def test_a_user_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE_PASSWORD", "one two")
    run_sample("registry/users.sh", tmp_path, {})
    assert is_right("one two", load_users(str(tmp_path / "users"))["alice"])
