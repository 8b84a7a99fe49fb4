"""One broker on ZooKeeper with nothing but SASL_SSL: SCRAM users, ACLs, tokens; and Kafka's tools that log in to it.

`admin` is the super user, and the broker's own. Both users are written to ZooKeeper before the broker starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from compat_tests.conftest import Launcher
from compat_tests.security.logins.sasl_sides import configs_on_zookeeper, jaas, java_file, make_chroot, stores
from compat_tests.support.services import Broker
from compat_tests.support.tools import Result, Tools
from compat_tests.support.waiting import eventually
from tests.support.network.certificates import Authority

SCRAM = "SCRAM-SHA-512"
ADMIN, ALICE = "admin", "alice"
PASSWORDS = {ADMIN: "admin-secret", ALICE: "alice-secret"}
OPTION = {
    "console-producer": "--producer.config",
    "console-consumer": "--consumer.config",
    "producer-perf-test": "--producer.config",
    "consumer-perf-test": "--consumer.config",
}
"""Which option names the client's settings, where it is not `--command-config`."""


@dataclass(frozen=True, slots=True)
class Locked:
    broker: Broker
    zookeeper: str
    authority: Authority

    @property
    def ca(self) -> str:
        return str(self.authority.certificate)

    def settings(self, user: str, password: str | None = None) -> str:
        """The file of settings with which `user` logs in."""
        return java_file(self.authority.directory, SCRAM, user, password or PASSWORDS[user], self.ca)

    def run(
        self, version: str, tool: str, *arguments: str, user: str = ADMIN, config: str | None = None, **more: object
    ) -> Result:
        """A tool of Kafka `version`, logged in as `user`, or with another file of settings."""
        login = [OPTION.get(tool, "--command-config"), config or self.settings(user)]
        tools = Tools(version, self.broker.bootstrap)
        return tools.run(tool, *login, *arguments, **more)  # type: ignore[arg-type]


@contextmanager
def locked_broker(launcher: Launcher, directory: Path, **keys: str) -> Iterator[Locked]:
    """A broker of the chosen kind. `keys` have `_` for `.`."""
    zookeeper = launcher.zookeeper(directory.name)
    make_chroot(zookeeper)
    for user, password in PASSWORDS.items():
        configs_on_zookeeper(
            zookeeper, "--alter", "--entity-type", "users", "--entity-name", user,
            "--add-config", f"{SCRAM}=[iterations=4096,password={password}]",
        )  # fmt: skip
    authority = Authority(directory / "certificates")
    broker = Broker(launcher.kind, directory / "broker", zookeeper, {})
    broker.configure(
        {
            "listeners": f"SASL_SSL://{broker.bootstrap}",
            "inter.broker.listener.name": "SASL_SSL",
            "sasl.enabled.mechanisms": SCRAM,
            "sasl.mechanism.inter.broker.protocol": SCRAM,
            f"listener.name.sasl_ssl.{SCRAM.lower()}.sasl.jaas.config": jaas(SCRAM, ADMIN, PASSWORDS[ADMIN]),
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": f"User:{ADMIN}",
            "delegation.token.secret.key": "the key of the cluster",
            "zookeeper.set.acl": "false",
            **stores(authority),
            **{key.replace("_", "."): value for key, value in keys.items()},
        }
    )
    one = Locked(broker, zookeeper, authority)
    try:
        broker.launch()
        eventually(lambda: one.run("3.9.1", "topics", "--list", check=False).code == 0, "a login by SCRAM")
        yield one
    finally:
        broker.service.kill()
