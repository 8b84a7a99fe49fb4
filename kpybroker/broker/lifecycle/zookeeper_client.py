"""The client of ZooKeeper as configured: limits, TLS, credentials, and the ACLs of the znodes it creates.

As Kafka's KafkaZkClient and ZkData. Credentials are those of the `Client` context of a JAAS login file: SASL with
DIGEST-MD5 (`DigestLoginModule`). A client certificate authenticates as well. Kerberos is not available.

`zookeeper.clientCnxnSocket` names the Java class that can do TLS; here `zookeeper.ssl.client.enable` is enough.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kpybroker.broker.lifecycle.errors import EXIT_CONFIG, StartupError
from kpybroker.core import tree as t
from kpybroker.wire import znodes

if TYPE_CHECKING:
    from kpybroker.broker.network.tls_settings import Store
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.coordination.tree import Tree

JAAS_CONTEXT = "Client"
JAAS_FILE = "kpybroker.jaas.config.file"
DIGEST_LOGIN_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"

KEYSTORE = ("zookeeper.ssl.keystore.location", "zookeeper.ssl.keystore.password", "zookeeper.ssl.keystore.type")
TRUSTSTORE = (
    "zookeeper.ssl.truststore.location",
    "zookeeper.ssl.truststore.password",
    "zookeeper.ssl.truststore.type",
)
REVOCATION = ("zookeeper.ssl.crl.enable", "zookeeper.ssl.ocsp.enable")


def zookeeper_tree(config: BrokerConfig, credentials: str | None = None) -> Tree:
    """A client that is not started; `credentials` are `user:password` of the digest scheme.

    Raises StartupError, and CoordinationUnavailable for a bad `zookeeper.connect`.
    """
    from kpybroker.coordination.kazoo_client import ClientOptions
    from kpybroker.coordination.zookeeper import ZooKeeperTree

    tls = _tls(config) if config.get_bool("zookeeper.ssl.client.enable") else None
    sasl = _sasl(config.get_str(JAAS_FILE))
    has_certificate = tls is not None and config.get_str("zookeeper.ssl.keystore.location") != ""
    auth = () if credentials is None else (("digest", credentials),)
    set_acl = config.get_bool("zookeeper.set.acl")
    if set_acl and sasl is None and not has_certificate:
        raise _refused(
            "zookeeper.set.acl is true, but this broker does not authenticate to ZooKeeper",
            f"give a JAAS file with a {JAAS_CONTEXT} context by KAFKA_OPTS or {JAAS_FILE}, or "
            "zookeeper.ssl.client.enable and zookeeper.ssl.keystore.location",
        )
    return ZooKeeperTree(
        config.get_str("zookeeper.connect"),
        ClientOptions(config.get_int("zookeeper.session.timeout.ms"), auth, sasl, tls),
        default_acl=secure_acl if set_acl else lambda path: t.OPEN_ACL_UNSAFE,
        max_in_flight_requests=config.get_int("zookeeper.max.in.flight.requests"),
    )


def secure_acl(path: str) -> tuple[t.Acl, ...]:
    """ZkData.defaultAcls: the creator may do everything; others may only read, except what is sensitive."""
    if not znodes.is_secured(path):
        return t.OPEN_ACL_UNSAFE
    return t.CREATOR_ALL_ACL if znodes.is_sensitive(path) else t.CREATOR_ALL_ACL + t.READ_ACL_UNSAFE


def _refused(cause: str, fix: str) -> StartupError:
    return StartupError(cause, fix, EXIT_CONFIG)


# --- credentials


def _sasl(file: str) -> Mapping[str, str] | None:
    """kazoo's options; None without a file, or without the context in it, as JaasUtils.isZkSaslEnabled.

    An empty context is none: Java's Configuration gives no entries for it.
    """
    if not file:
        return None
    from kpybroker.config.sources.jaas import JaasError, parse_jaas

    try:
        modules = parse_jaas(file, Path(file).read_text()).get(JAAS_CONTEXT)
    except (OSError, UnicodeDecodeError, JaasError) as error:
        raise _refused(f"the JAAS login file cannot be read: {error}", "correct it, or name another") from error
    if not modules:
        return None
    options = modules[0].options if len(modules) == 1 and modules[0].name == DIGEST_LOGIN_MODULE else {}
    if not {"username", "password"} <= options.keys():
        raise _refused(
            f"the {JAAS_CONTEXT} context of {file} cannot be used",
            f"let it hold one {DIGEST_LOGIN_MODULE} with username and password; Kerberos is not available here",
        )
    if find_spec("puresasl") is None:
        raise _refused(
            "credentials for ZooKeeper need the package pure-sasl",
            "pip install 'kpybroker[security]', or use a certificate (zookeeper.ssl.keystore.location)",
        )
    return {"mechanism": "DIGEST-MD5", "username": options["username"], "password": options["password"]}


# --- TLS


def _tls(config: BrokerConfig) -> ssl.SSLContext:
    from kpybroker.broker.network.tls import TlsSettings, client_context
    from kpybroker.broker.network.tls_settings import TlsError

    for key in REVOCATION:
        if config.get_bool(key):
            raise _refused(f"{key} is true, but certificate revocation is not checked here", f"set {key}=false")
    versions = config.get_list("zookeeper.ssl.enabled.protocols") or (config.get_str("zookeeper.ssl.protocol"),)
    settings = TlsSettings(
        keystore=_store(config, KEYSTORE),
        truststore=_store(config, TRUSTSTORE),
        versions=versions,
        cipher_suites=config.get_list("zookeeper.ssl.cipher.suites"),
        check_hostname=config.get_str("zookeeper.ssl.endpoint.identification.algorithm").upper() == "HTTPS",
    )
    try:
        return client_context(settings)
    except TlsError as error:
        raise _refused(f"TLS to ZooKeeper: {error.cause}", error.fix) from error


def _store(config: BrokerConfig, keys: Sequence[str]) -> Store | None:
    from kpybroker.broker.network.tls_settings import Store

    location, password, store_type = map(config.get_str, keys)
    return Store(location, password or None, store_type or None) if location else None
