"""SCRAM users as administrators manage them: kafka-configs on ZooKeeper and on a broker, and what they see."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.conftest import Launcher
from compat_tests.security.logins.sasl_sides import (
    MECHANISMS,
    Sided,
    broker_keys,
    configs_on_zookeeper,
    java_file,
    make_chroot,
    may_log_in,
    set_scram,
)
from compat_tests.support.services import Broker
from compat_tests.support.tools import VERSIONS, Tools
from compat_tests.support.waiting import eventually
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.wire.api import ApiKey

_numbers = itertools.count()
SCRAM = "SCRAM-SHA-256"


@pytest.fixture(scope="module")
def on_tree(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sided, str]]:
    """A broker on ZooKeeper, where the user early existed before it."""
    zookeeper = launcher.zookeeper(f"sasl-users-{next(_numbers)}")
    make_chroot(zookeeper)
    configs_on_zookeeper(
        zookeeper, "--alter", "--entity-type", "users", "--entity-name", "early",
        "--add-config", "SCRAM-SHA-256=[iterations=8192,password=early-1],SCRAM-SHA-512=[password=early-1]",
    )  # fmt: skip
    one = Sided(Broker(launcher.kind, tmp_path_factory.mktemp("sasl-users") / "broker", zookeeper, {}))
    one.broker.configure(broker_keys(one.broker, one.sasl_port))
    one.broker.start()
    yield one, zookeeper
    one.broker.service.kill()


def test_users_of_zookeeper_log_in_change_and_go(on_tree: tuple[Sided, str]) -> None:
    sided, zookeeper = on_tree
    user = ("--entity-type", "users", "--entity-name", "early")
    for mechanism in MECHANISMS[1:]:
        assert may_log_in(sided.sasl, mechanism, "early", "early-1")
    configs_on_zookeeper(zookeeper, "--alter", *user, "--add-config", "SCRAM-SHA-256=[password=early-2]")
    eventually(lambda: may_log_in(sided.sasl, SCRAM, "early", "early-2"), "the new password is valid")
    assert not may_log_in(sided.sasl, SCRAM, "early", "early-1")
    configs_on_zookeeper(zookeeper, "--alter", *user, "--delete-config", "SCRAM-SHA-256")
    eventually(lambda: not may_log_in(sided.sasl, SCRAM, "early", "early-2"), "the credential is gone")
    assert may_log_in(sided.sasl, "SCRAM-SHA-512", "early", "early-1")


def test_what_a_broker_writes_kafka_configs_reads_in_zookeeper(on_tree: tuple[Sided, str]) -> None:
    sided, zookeeper = on_tree
    set_scram(Tools("3.9.1", sided.plain), "late", "late-1", (SCRAM,))
    shown = configs_on_zookeeper(zookeeper, "--describe", "--entity-type", "users", "--entity-name", "late").out
    assert "Configs for user-principal 'late' are SCRAM-SHA-256=salt=" in shown
    assert shown.rstrip().endswith("iterations=4096")
    assert may_log_in(sided.sasl, SCRAM, "late", "late-1")


@pytest.mark.parametrize("version", VERSIONS)
def test_kafka_configs_over_a_login(on_tree: tuple[Sided, str], tmp_path: Path, version: str) -> None:
    """Describe shows iterations and no key; delete ends the user; a user that is not there is an error."""
    sided, _ = on_tree
    set_scram(Tools("3.9.1", sided.plain), "admin", "admin-secret", (SCRAM,))
    name = f"carol-{version}"
    tools, login = Tools(version, sided.sasl), ("--command-config", java_file(tmp_path, SCRAM, "admin", "admin-secret"))
    user = ("--entity-type", "users", "--entity-name", name)
    tools.run("configs", *login, "--alter", *user, "--add-config", "SCRAM-SHA-256=[iterations=5000,password=c-1]")
    assert may_log_in(sided.sasl, SCRAM, name, "c-1")
    if sided.broker.kind == "kafka" or ApiKey.DESCRIBE_CLIENT_QUOTAS in SERVED:  # kafka-configs asks for quotas as well
        shown = tools.run("configs", *login, "--describe", *user).out
        assert f"SCRAM credential configs for user-principal '{name}' are SCRAM-SHA-256=iterations=5000" in shown
        assert "stored_key" not in shown
    tools.run("configs", *login, "--alter", *user, "--delete-config", "SCRAM-SHA-256")
    assert not may_log_in(sided.sasl, SCRAM, name, "c-1")
    again = tools.run("configs", *login, "--alter", *user, "--delete-config", "SCRAM-SHA-256", check=False)
    assert again.code
    assert "Attempt to delete a user credential that does not exist" in again.out + again.err


def test_no_description_of_a_broker_shows_a_secret(on_tree: tuple[Sided, str]) -> None:
    sided, _ = on_tree
    tools = Tools("3.9.1", sided.plain)
    shown = tools.run("configs", "--describe", "--all", "--entity-type", "brokers", "--entity-name", "0").out
    lines = [line for line in shown.splitlines() if "sasl.jaas.config" in line]
    assert len(lines) >= len(MECHANISMS)
    assert all("sensitive=true" in line for line in lines)
    assert "secret" not in "".join(lines).replace("delegation.token.secret.key", "")
