"""Versions and suites: what a setting names is what is enabled, or the start is refused."""

from __future__ import annotations

import ssl

import pytest

from kpybroker.broker.network.tls_contexts import TLS_1_3_SUITES, TlsOptions, listener_context, peer_context
from kpybroker.broker.network.tls_settings import Store, TlsError
from kpybroker.broker.network.tls_stores import Identity, identity_of_store, trusted_of_store
from tests.support.network.tls_transport import authority

BOTH = ("TLSv1.2", "TLSv1.3")
OLD_SUITE = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"


def identity() -> Identity:
    return identity_of_store(Store(str(authority().directory / "server.pem"), None, "PEM"), None)


def made(options: TlsOptions, client_auth: str = "none") -> ssl.SSLContext:
    trusted = trusted_of_store(Store(str(authority().certificate), None, "PEM"))
    return listener_context(identity(), trusted, options, client_auth)


@pytest.mark.parametrize(
    ("options", "low", "high"),
    [
        (TlsOptions(BOTH), "TLSv1_2", "TLSv1_3"),
        (TlsOptions(("TLSv1.3",)), "TLSv1_3", "TLSv1_3"),
        (TlsOptions(("TLSv1.2",)), "TLSv1_2", "TLSv1_2"),
        (TlsOptions(BOTH, (OLD_SUITE,)), "TLSv1_2", "TLSv1_2"),
        (TlsOptions(BOTH, tuple(TLS_1_3_SUITES)), "TLSv1_3", "TLSv1_3"),
        (TlsOptions(BOTH, (OLD_SUITE, *TLS_1_3_SUITES)), "TLSv1_2", "TLSv1_3"),
    ],
)
def test_the_versions_are_those_that_versions_and_suites_leave(options: TlsOptions, low: str, high: str) -> None:
    context = made(options)
    assert (context.minimum_version.name, context.maximum_version.name) == (low, high)
    assert context.options & ssl.OP_NO_RENEGOTIATION
    if OLD_SUITE in options.cipher_suites:
        older = [cipher["name"] for cipher in context.get_ciphers() if not cipher["name"].startswith("TLS_")]
        assert older == ["ECDHE-RSA-AES256-GCM-SHA384"]


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (TlsOptions(("TLSv1.1", "TLSv1.2")), "ssl.enabled.protocols has TLSv1.1"),
        (TlsOptions(()), "has no version"),
        (TlsOptions(BOTH, ("TLS_AES_128_GCM_SHA256",)), "1 of the 3 suites of TLS 1.3"),
        (TlsOptions(BOTH, ("TLS_X_WITH_Y",)), "no suite TLS_X_WITH_Y"),
        (TlsOptions(("TLSv1.3",), (OLD_SUITE,)), "no suite of TLSv1.3"),
    ],
)
def test_what_cannot_be_enabled_as_it_is_named_is_refused(options: TlsOptions, cause: str) -> None:
    with pytest.raises(TlsError) as raised:
        made(options)
    assert cause in raised.value.cause
    assert raised.value.fix


def test_clients_show_a_certificate_as_client_auth_says() -> None:
    modes = {name: made(TlsOptions(BOTH), name).verify_mode.name for name in ("none", "requested", "required")}
    assert modes == {"none": "CERT_NONE", "requested": "CERT_OPTIONAL", "required": "CERT_REQUIRED"}


def test_brokers_check_each_other_with_or_without_the_host() -> None:
    for checks in (True, False):
        context = peer_context(None, None, TlsOptions(BOTH), checks)
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.check_hostname is checks
