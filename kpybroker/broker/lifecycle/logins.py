"""The logins of a start: gates of the SASL listeners, the users that they know first, and this broker's own logins.

A broker without a SASL listener imports nothing of this.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kpybroker.broker.lifecycle.errors import EXIT_CONFIG, StartupError
from kpybroker.broker.security.client_logins import PeerLogin, peer_login
from kpybroker.broker.security.gate import SaslGate
from kpybroker.broker.security.logins import ListenerLogins, LoginConfigError, Sources, TokenOf
from kpybroker.broker.security.scram_users import ScramUsers, create_initial_users, parse_initial_users
from kpybroker.core.security.scram import SALT_BITS, salt_of
from kpybroker.wire import znodes

if TYPE_CHECKING:
    from kpybroker.broker.cluster.config_repository import ConfigRepository
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.requests.dispatch import Dispatcher
    from kpybroker.config.broker import BrokerConfig

INITIAL_USERS: Final = "kpybroker.scram.initial.users"


def is_sasl(config: BrokerConfig, listener: str) -> bool:
    """Whether clients log in on this listener by SASL."""
    return config.security_protocols[listener].startswith("SASL_")


def make_gates(
    host: Host, dispatcher: Dispatcher, configs: ConfigRepository, token_of: TokenOf | None = None
) -> Mapping[str, SaslGate]:
    """The gate of each SASL listener. Call it before `configs.start`. Raises StartupError.

    `token_of`: as `Sources.token_of`.
    """
    config = host.config
    users = ScramUsers()
    configs.follow(znodes.CONFIG_USERS, users.update)
    sources = Sources(users, token_of)
    try:
        gates = {}
        for endpoint in config.listeners:
            name = endpoint.listener_name
            if is_sasl(config, name):
                gates[name] = SaslGate(ListenerLogins(config, name, sources), dispatcher, host.clock)
        for name in (config.inter_broker_listener_name, config.get_str("control.plane.listener.name").upper()):
            if name and is_sasl(config, name):
                peer_login(config, name)
    except LoginConfigError as error:
        raise StartupError(error.cause, error.fix, EXIT_CONFIG) from error
    return gates


def login_on(config: BrokerConfig, listener: str) -> PeerLogin | None:
    """How this broker logs in to others on that listener; None where no login is needed."""
    return peer_login(config, listener) if is_sasl(config, listener) else None


async def create_users(host: Host, configs: ConfigRepository) -> None:
    """Create the users of `kpybroker.scram.initial.users` that do not exist yet. Raises StartupError, TreeError."""
    text = host.config.get_str(INITIAL_USERS)
    try:
        users = parse_initial_users(text)
    except ValueError as error:
        raise StartupError(
            f"{INITIAL_USERS}: {error}",
            f"write {INITIAL_USERS}=SCRAM-SHA-256=[name=alice,password=...],SCRAM-SHA-512=[name=bob,password=...]",
            EXIT_CONFIG,
        ) from error
    await create_initial_users(configs, users, lambda: salt_of(secrets.randbits(SALT_BITS)))
