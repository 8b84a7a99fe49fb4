"""The brokers of `kpybroker.testing` in a thread: as `kpybroker dev` starts them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.development import development_defaults
from kpybroker.control.development.security import SecurityOptions, broker_keys, tls_directory, tls_files
from kpybroker.control.plan import BrokerPlan, listener_text


def development_plans(
    given: Mapping[str, str],
    brokers: int,
    address: tuple[str, int],
    directory: Path,
    security: tuple[SecurityOptions, str | None] = (SecurityOptions(), None),
) -> list[BrokerPlan]:
    """Ids from 0, ports from that of `address` (0: any free ones), files below `directory`.

    `security`: what is wanted, and the directory that everything is removed with, if any. Raises ConfigError,
    NoCertificates.
    """
    host, port = address
    wanted, temporary = security
    files = tls_files(tls_directory(str(directory), temporary), host) if wanted.tls else None
    keys = {**development_defaults(brokers), **broker_keys(wanted, files)}
    plans = []
    for broker_id in range(brokers):
        own = {
            "broker.id": str(broker_id),
            "listeners": listener_text(wanted.protocol, host, port + broker_id if port else 0),
            "log.dirs": str(directory / f"broker-{broker_id}" if brokers > 1 else directory),
        }
        plans.append(BrokerPlan.of(BrokerConfig({**keys, **own, **given})))
    return plans
