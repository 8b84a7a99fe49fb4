"""The SCRAM credentials of all users, as `/config/users` holds them; kept fresh by the notifications of its changes.

Kafka's `CredentialProvider` with its `ScramCredential` caches.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from kpybroker.core.security.scram import (
    BY_NAME,
    MIN_ITERATIONS,
    SaltForm,
    ScramCredential,
    ScramMechanism,
    form_of,
    format_credential,
    make_credential,
    parse_credential,
)
from kpybroker.wire import znodes

logger = logging.getLogger("kafka.security.CredentialProvider")

_INITIAL = re.compile(r"\s*(?P<mechanism>[A-Z0-9-]+)=\[(?P<fields>[^\]]*)\]\s*(?:,|;|$)")


class Configs(Protocol):
    """The part of the `ConfigRepository` that writes users."""

    async def read(self, entity_type: str, entity: str) -> dict[str, str]:
        """What the tree holds for the entity now."""

    async def write(self, entity_type: str, entity: str, props: Mapping[str, str]) -> None:
        """Keep `props` for the entity, and notify every broker."""


class InitialUser(NamedTuple):
    """A user to create where it has no credential yet."""

    name: str
    mechanism: ScramMechanism
    password: str
    iterations: int

    def __repr__(self) -> str:
        return f"InitialUser({self.name}, {self.mechanism.mechanism_name})"


class ScramUsers:
    """Credentials by mechanism and user name."""

    def __init__(self) -> None:
        self._credentials: dict[ScramMechanism, dict[str, ScramCredential]] = {one: {} for one in ScramMechanism}
        self._usual: dict[ScramMechanism, SaltForm] = {}

    def credential(self, mechanism: ScramMechanism, name: str) -> ScramCredential | None:
        """The credential of a user; None if it has none for this mechanism."""
        return self._credentials[mechanism].get(name)

    def usual_form(self, mechanism: ScramMechanism) -> SaltForm:
        """The form that most credentials of the mechanism have; Kafka's where there is none. Of equals, the first."""
        if mechanism not in self._usual:
            found = Counter(map(form_of, self._credentials[mechanism].values())).most_common(1)
            self._usual[mechanism] = found[0][0] if found else SaltForm()
        return self._usual[mechanism]

    def update(self, entity: str, props: Mapping[str, str]) -> None:
        """`/config/users/<entity>` holds `props` now. Values that are no credentials are logged and not used."""
        if "/" in entity:
            return  # quotas of a user and client id
        name = znodes.desanitize(entity)
        self._usual.clear()
        for mechanism, credentials in self._credentials.items():
            credential = None
            if (text := props.get(mechanism.mechanism_name)) is not None:
                try:
                    credential = parse_credential(text)
                except ValueError as error:
                    logger.error("%s of user %s in /config/users: %s", mechanism.mechanism_name, ascii(name), error)
            if credential is None:
                credentials.pop(name, None)
            else:
                credentials[name] = credential


def parse_initial_users(text: str) -> list[InitialUser]:
    """`SCRAM-SHA-256=[name=alice,password=secret],...`, as `kafka-storage format --add-scram` takes them.

    Raises ValueError, which shows no password.
    """
    users: list[InitialUser] = []
    position = 0
    while position < len(text.rstrip()):
        match = _INITIAL.match(text, position)
        mechanism = None if match is None else BY_NAME.get(match["mechanism"])
        fields = dict(item.strip().partition("=")[::2] for item in (match["fields"] if match else "").split(","))
        known = fields.keys() <= {"name", "password", "iterations"}
        iterations = fields.get("iterations", str(MIN_ITERATIONS))
        has_all = bool(fields.get("name")) and bool(fields.get("password")) and iterations.isdigit()
        if match is None or mechanism is None or not known or not has_all or int(iterations) < MIN_ITERATIONS:
            raise ValueError(f"user {len(users) + 1} cannot be read")
        users.append(InitialUser(fields["name"], mechanism, fields["password"], int(iterations)))
        position = match.end()
    return users


async def create_initial_users(configs: Configs, users: list[InitialUser], new_salt: Callable[[], bytes]) -> None:
    """Write the credentials of those users that have none for their mechanism. Raises TreeError."""
    for user in users:
        entity, key = znodes.sanitize(user.name), user.mechanism.mechanism_name
        props = await configs.read(znodes.CONFIG_USERS, entity)
        if key not in props:
            credential = make_credential(user.mechanism, user.password, new_salt(), user.iterations)
            await configs.write(znodes.CONFIG_USERS, entity, {**props, key: format_credential(credential)})
            logger.info("Created the %s credential of user %s", key, ascii(user.name))
