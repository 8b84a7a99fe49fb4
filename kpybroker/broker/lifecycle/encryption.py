"""TLS at the start: of the listeners, and towards other brokers.

A broker without a listener that is encrypted imports nothing of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kpybroker.broker.lifecycle.errors import EXIT_CONFIG, StartupError
from kpybroker.broker.network.tls_settings import TlsError
from kpybroker.broker.security.stores import ListenerTls, PeerTls
from kpybroker.config.values import ConfigTextError

if TYPE_CHECKING:
    from kpybroker.broker.cluster.config_repository import ConfigRepository
    from kpybroker.broker.network.handshakes import Tls
    from kpybroker.broker.network.transport import Stream
    from kpybroker.broker.peers.connection import Secure
    from kpybroker.config.broker import BrokerConfig


def is_encrypted(config: BrokerConfig, listener: str) -> bool:
    """Whether connections on this listener use TLS."""
    return config.security_protocols[listener].endswith("SSL")


def make_tls(config: BrokerConfig, configs: ConfigRepository) -> Mapping[str, Tls]:
    """TLS of each listener that is encrypted, kept up to date with the configuration. Raises StartupError."""
    made: dict[str, ListenerTls] = {}
    for endpoint in config.listeners:
        name = endpoint.listener_name
        if is_encrypted(config, name):
            try:
                made[name] = ListenerTls(config, name)
            except TlsError as error:
                raise StartupError(f"listener {name}: {error.cause}", error.fix, EXIT_CONFIG) from error

    def check(new: BrokerConfig) -> None:
        for name, one in made.items():
            try:
                one.check(new)
            except TlsError as error:
                raise ConfigTextError(
                    "ssl.keystore.location", f"listener {name}: {error.cause}; {error.fix}"
                ) from error

    for one in made.values():
        configs.on_broker_read(one.refresh)
    config.on_check(check)
    return made


def make_peer_tls(config: BrokerConfig, configs: ConfigRepository) -> Secure:
    """What encrypts connections to other brokers, on the listeners where that is due. Raises StartupError."""
    made: dict[str, PeerTls] = {}
    for name in (config.inter_broker_listener_name, config.get_str("control.plane.listener.name").upper()):
        if name and is_encrypted(config, name):
            try:
                made[name] = PeerTls(config, name)
            except TlsError as error:
                raise StartupError(
                    f"TLS to other brokers on listener {name}: {error.cause}", error.fix, EXIT_CONFIG
                ) from error
            configs.on_broker_read(made[name].refresh)

    async def secure(listener: str, host: str, stream: Stream, timeout_s: float) -> Stream:
        peer_tls = made.get(listener)
        return stream if peer_tls is None else await peer_tls.secure(stream, host, timeout_s)

    return secure
