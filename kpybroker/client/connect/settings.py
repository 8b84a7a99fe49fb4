"""The configuration of a command: `--command-config`, `-X`, `-b`, the environment and a profile, as librdkafka's keys.

`-X` overrides the file, and the file the profile, key by key. The address is that of `-b`, else `bootstrap.servers` of
`-X` or the file, else KPYBROKER_BOOTSTRAP_SERVERS, else the profile's, else DEFAULT_BOOTSTRAP. A schema registry's is
found in the same order; the profile's credentials for it are used for the profile's address only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kpybroker.client.connect import profiles
from kpybroker.client.connect.errors import keep_secret, note, usage
from kpybroker.client.connect.properties import is_secret, translate
from kpybroker.client.connect.visible import is_text, visible
from kpybroker.config.sources.properties import UnreadableFile, load_properties

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
DEFAULT_PORT: Final = 9092
ENVIRONMENT: Final = "KPYBROKER_BOOTSTRAP_SERVERS"
REGISTRY_ENVIRONMENT: Final = "KPYBROKER_SCHEMA_REGISTRY"
CLIENT_ID: Final = "kpybroker-cli"
OF_REGISTRY: Final = re.compile(r"schema\.registry\..*|basic\.auth\..*|auto\.register\.schemas|use\.latest\.version")
"""Keys of Confluent's serializers, which files of clients have among the others."""


class Connection(NamedTuple):
    """The options that every command has, as the user gave them."""

    bootstrap: str | None = None
    command_config: str | None = None
    options: tuple[str, ...] = ()
    timeout_s: float = 30.0
    profile: str | None = None
    registry: str | None = None


class Registry(NamedTuple):
    """A schema registry's address, and `USER:PASSWORD` where it wants a login."""

    url: str
    login: str | None = None


class Settings(NamedTuple):
    """Where and how to connect. `properties` are librdkafka's, without `bootstrap.servers`."""

    bootstrap: str
    properties: Mapping[str, str]
    timeout_s: float
    source: str
    """Where the properties are from, for errors."""
    registry: Registry | None = None

    def client(self, **more: Any) -> dict[str, Any]:
        """librdkafka's configuration of a client; keys of `more` have `_` for `.`, and win."""
        own = {key.replace("_", "."): value for key, value in more.items()}
        # Its own log lines would mix with ours: errors arrive through `error_cb`.
        fixed = {"bootstrap.servers": self.bootstrap, "log_level": 0}
        return {"client.id": CLIENT_ID, **self.properties, **fixed, **own}

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The bootstrap servers as (host, port)."""
        return [parse_address(part) for part in self.bootstrap.split(",")]

    @property
    def protocol(self) -> str:
        """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        return self.properties.get("security.protocol", "PLAINTEXT").upper()


def load(connection: Connection) -> Settings:
    """Read the profile, the file and the options. Raises CommandError with exit code 2; from then on no secret is
    printed.
    """
    saved = profiles.load(connection.profile) if connection.profile is not None else {}
    own = _own(connection)
    for given in (saved, own):
        keep_secret(value for key, value in given.items() if is_secret(key))
    registry = _registry(connection, saved, own)
    properties, ignored = translate({**_without_registry(saved), **_without_registry(own)})
    keep_secret(value for key, value in properties.items() if is_secret(key))
    if ignored:
        note(f"note: these keys have no effect here: {', '.join(ignored)}")
    found = properties.pop("bootstrap.servers", None)
    bootstrap = connection.bootstrap
    if bootstrap is None:
        named = (found if "bootstrap.servers" in own else None) or os.environ.get(ENVIRONMENT)
        bootstrap = named or found or DEFAULT_BOOTSTRAP
    for part in bootstrap.split(","):
        parse_address(part)
    for key, value in properties.items():
        if not is_text(key) or not is_text(value):
            raise usage(f"the value of {visible(key)} is no UTF-8", "correct it in --command-config or -X")
    profile = f"profile {connection.profile}" if connection.profile is not None else ""
    source = " and ".join(filter(None, [profile, connection.command_config, "-X" if connection.options else ""]))
    return Settings(bootstrap, properties, connection.timeout_s, source or "the command line", registry)


def _own(connection: Connection) -> dict[str, str]:
    """The keys of `--command-config` and `-X`."""
    given: dict[str, str] = {}
    if connection.command_config is not None:
        try:
            given = load_properties(connection.command_config)
        except UnreadableFile as error:
            raise usage(str(error), "name a .properties file as Kafka's own tools take it") from None
    return given | parse_options(connection.options)


def _without_registry(given: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in given.items() if not OF_REGISTRY.fullmatch(key)}


def _registry(connection: Connection, saved: Mapping[str, str], own: Mapping[str, str]) -> Registry | None:
    """The registry, with the login that belongs to it."""
    named = connection.registry
    if named is None:
        named = own.get("schema.registry.url") or os.environ.get(REGISTRY_ENVIRONMENT)
    url = named if named is not None else saved.get("schema.registry.url")
    if url is None:
        return None
    given = {**({} if named is not None else saved), **own}
    if given.get("basic.auth.credentials.source", "").upper() == "SASL_INHERIT":
        user, password = given.get("sasl.username"), given.get("sasl.password")
        return Registry(url, f"{user}:{password}" if user and password else None)
    return Registry(url, given.get("schema.registry.basic.auth.user.info") or given.get("basic.auth.user.info"))


def parse_options(options: Iterable[str]) -> dict[str, str]:
    """The values of `-X KEY=VALUE` by key. The error names the key only: the value may be a secret."""
    parsed = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name.strip():
            raise usage(f"-X {name.strip() or option} has no value", "write -X KEY=VALUE")
        parsed[name.strip()] = value.strip()
    return parsed


def parse_address(text: str) -> tuple[str, int]:
    """(host, port) of `HOST`, `HOST:PORT`, `[IPV6]:PORT`, each also behind `PROTOCOL://`."""
    rest = text.strip().rpartition("://")[2]
    if rest.startswith("["):
        host, _, port = rest[1:].partition("]")
        port = port.removeprefix(":")
    elif rest.count(":") > 1:
        host, port = rest, ""
    else:
        host, _, port = rest.partition(":")
    if not host or not is_text(host) or (port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)):
        raise usage(
            f"{text.strip() or 'an empty text'} is not an address", "write -b HOST:PORT, or several with commas"
        )
    return host, int(port) if port else DEFAULT_PORT
