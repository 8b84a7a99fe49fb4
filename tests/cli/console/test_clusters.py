"""Which clusters `kpybroker console` has, and what is around each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.cli.console.clusters import one, settings_of
from kpybroker.client.connect import profiles
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import Connection, Settings
from kpybroker.console.options import Around, ConnectAddress, ConsoleOptions, parse_cluster, parse_connect, several
from tests.support.programs.command_line import invoke

HERE = Connection(timeout_s=1.0)


@pytest.fixture(autouse=True)
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two profiles, of which one has a registry, and one without a cluster; the second is in use."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("KPYBROKER_BOOTSTRAP_SERVERS", "elsewhere:1")
    registry = {"schema.registry.url": "http://staging:8081"}
    profiles.save("staging", {"bootstrap.servers": "staging:9092", **registry})
    profiles.save("production", {"bootstrap.servers": "production:9092", "client.id": "ops"})
    profiles.save("empty", {"client.id": "ops"})
    profiles.use("production")


def made(settings: Settings) -> ConsoleOptions:
    return ConsoleOptions(settings, allow_changes=True)


def test_each_profile_and_each_named_address_is_a_cluster() -> None:
    found = settings_of(HERE, ("staging", "production"), ("test=127.0.0.1:9092",))
    assert {name: one.bootstrap for name, one in found.items()} == {
        "staging": "staging:9092",
        "production": "production:9092",
        "test": "127.0.0.1:9092",
    }
    assert found["production"].properties["client.id"] == "ops"
    assert "client.id" not in found["test"].properties


def test_one_profile_is_no_name() -> None:
    assert settings_of(HERE._replace(profile="staging"), ("staging",), ()) == {}


@pytest.mark.parametrize(
    ("connection", "names", "clusters", "cause"),
    [
        (HERE._replace(bootstrap="a:1"), (), ("a=b:1",), "-b is one cluster without a name"),
        (HERE, ("staging", "staging"), (), "two clusters are named staging"),
        (HERE, ("staging",), ("staging=b:1",), "two clusters are named staging"),
        (HERE, ("staging", "empty"), (), "profile empty names no cluster"),
        (HERE, ("staging", "none"), (), "no name of a profile"),
        (HERE, (), ("a",), "is no cluster"),
        (HERE, (), ("a/b=c:1",), "is no cluster"),
        (HERE, (), ("a=c:x",), "is not an address"),
    ],
)
def test_what_names_no_clusters_is_refused(
    connection: Connection, names: tuple[str, ...], clusters: tuple[str, ...], cause: str
) -> None:
    with pytest.raises(CommandError, match=cause) as refused:
        settings_of(connection, names, clusters)
    assert refused.value.exit_code == 2


def test_what_is_around_a_cluster_is_its_own_or_of_all() -> None:
    settings = settings_of(HERE, ("staging", "production"), ())
    around = Around(
        ("http://all:8083", "staging/etl=http://etl:8083"),
        ("production=http://p:9404", "production=http://q:9404"),
        ("production=http://registry:8081",),
    )
    staging, production = several(made(settings["staging"]), settings, around)
    assert (staging.name, staging.registry, staging.metrics) == ("staging", "http://staging:8081", ())
    assert [one.name for one in staging.connects] == ["all:8083", "etl"]
    assert (production.registry, [one.name for one in production.connects]) == ("http://registry:8081", ["all:8083"])
    assert production.metrics == ("http://p:9404", "http://q:9404")
    assert production.allow_changes


@pytest.mark.parametrize(
    ("around", "cause"),
    [
        (Around(connects=("other/x=http://a:1",)), "--connect names other"),
        (Around(metrics=("http://a:1",)), "does not say of which cluster"),
        (Around(registries=("other=http://a:1",)), "--schema-registry names other"),
        (Around(registries=("nowhere",)), "--schema-registry is no address"),
        (Around(connects=("ftp://x",)), "--connect is no address"),
    ],
)
def test_what_is_around_no_cluster_is_refused(around: Around, cause: str) -> None:
    settings = settings_of(HERE, ("staging", "production"), ())
    with pytest.raises(CommandError, match=cause):
        several(made(settings["staging"]), settings, around)
    with pytest.raises(CommandError, match="--control is of one broker"):
        several(made(settings["staging"])._replace(control="http://127.0.0.1:1"), settings, Around())


def test_one_cluster_takes_its_options_without_names() -> None:
    around = Around(("http://a:8083",), ("http://m:1",), ("http://r:1",))
    found = one(HERE._replace(bootstrap="b:1"), made, around)
    assert (found.settings.bootstrap, found.metrics, found.registry, found.name) == (
        "b:1",
        ("http://m:1",),
        "http://r:1",
        "",
    )
    assert found.connects == (ConnectAddress("a:8083", "http://a:8083"),)
    with pytest.raises(CommandError, match="more than one --schema-registry"):
        one(HERE, made, Around(registries=("http://a", "http://b")))


def test_names_of_addresses() -> None:
    assert parse_connect("http://ada:pw@cdc:8083/x") == ConnectAddress("cdc:8083", "http://ada:pw@cdc:8083/x")
    assert parse_connect("here/cdc=https://x") == ConnectAddress("cdc", "https://x", "here")
    assert parse_cluster("a=b:1,c:2") == ("a", "b:1,c:2")


def test_the_command_refuses_what_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    found = invoke(monkeypatch, "console", "--cluster", "a=b:1", "--cluster", "a=c:1", "--port", "0")
    assert found.code == 2
    assert "two clusters are named a" in found.err
    clusters = ("--cluster", "a=127.0.0.1:1", "--cluster", "b=127.0.0.1:1")
    found = invoke(monkeypatch, "console", *clusters, "--connect", "http://user:pa55@", "--port", "0")
    assert found.code == 2
    assert "pa55" not in found.err
