"""Stores and settings -> contexts: a handshake shows what they are worth."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.network.tls import TlsSettings, client_context
from kpybroker.broker.network.tls_settings import Store, TlsError, openssl_name
from tests.support.network.certificates import PASSWORD, Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("certificates"))
    made.issue("server")
    made.issue("client")
    made.issue("elsewhere", "127.0.0.9")
    return made


def shake_hands(client: ssl.SSLContext, authority: Authority, server: str = "server") -> tuple[str, str | None]:
    """(TLS version, common name that the server saw). Both sides in this process; raises what the client meets."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.directory / f"{server}.pem")
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_OPTIONAL
    seen: list[str | None] = []

    def serve(end: socket.socket) -> None:
        try:
            with context.wrap_socket(end, server_side=True) as stream:
                peer: Any = stream.getpeercert()
                names = dict(pair for part in peer.get("subject", ()) for pair in part) if peer else {}
                seen.append(names.get("commonName"))
                stream.sendall(b"!")
        except OSError:
            pass

    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=serve, args=(theirs,))
    thread.start()
    try:
        with ours, client.wrap_socket(ours, server_hostname="127.0.0.1") as stream:
            assert stream.recv(1) == b"!"
            return str(stream.version()), seen[0]
    finally:
        thread.join()


def pem(authority: Authority, name: str) -> Store:
    return Store(str(authority.directory / f"{name}.pem"))


def test_pem_stores_let_both_sides_know_each_other(authority: Authority) -> None:
    context = client_context(TlsSettings(pem(authority, "client"), pem(authority, "ca")))
    assert shake_hands(context, authority) == ("TLSv1.3", "client")
    alone = client_context(TlsSettings(truststore=pem(authority, "ca")))
    assert shake_hands(alone, authority) == ("TLSv1.3", None)


def test_pkcs12_stores_do_too_and_leave_no_key_behind(authority: Authority, tmp_path: Path) -> None:
    keys = Store(str(authority.directory / "client.p12"), PASSWORD)
    trust = Store(str(authority.trust_p12), PASSWORD, "pkcs12")
    context = client_context(TlsSettings(keys, trust, versions=["TLSv1.2"]))
    assert shake_hands(context, authority) == ("TLSv1.2", "client")


def test_no_other_authority_is_trusted(authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(client_context(TlsSettings()), authority)
    trusting = TlsSettings(truststore=pem(authority, "ca"))
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        shake_hands(client_context(trusting), authority, "elsewhere")
    careless = TlsSettings(truststore=pem(authority, "ca"), check_hostname=False)
    assert shake_hands(client_context(careless), authority, "elsewhere")[0] == "TLSv1.3"


def test_an_encrypted_key_needs_its_password(authority: Authority, tmp_path: Path) -> None:
    from tests.support.network.certificates import openssl

    encrypted = tmp_path / "encrypted.pem"
    openssl(
        *("pkcs8", "-topk8", "-in", authority.directory / "client.key", "-out", encrypted),
        *("-passout", f"pass:{PASSWORD}"),
    )
    with encrypted.open("a") as file:
        file.write((authority.directory / "client.crt").read_text())
    client_context(TlsSettings(Store(str(encrypted), PASSWORD)))
    for password in (None, "wrong1"):
        with pytest.raises(TlsError) as raised:
            client_context(TlsSettings(Store(str(encrypted), password)))
        assert str(encrypted) in raised.value.cause
        assert "wrong1" not in raised.value.cause


def test_stores_that_cannot_be_read_are_reported(authority: Authority, tmp_path: Path) -> None:
    stores = {
        Store("/no/such.pem"): "No such file",
        Store(str(authority.directory / "client.p12"), "wrong1"): "cannot be opened: its password is wrong",
        Store("/etc/keys.jks"): "type JKS, which is not read here",
        Store("/etc/keys.pem", type="BCFKS"): "type BCFKS",
    }
    for store, reported in stores.items():
        for settings in (TlsSettings(keystore=store), TlsSettings(truststore=store)):
            with pytest.raises(TlsError) as raised:
                client_context(settings)
            assert reported in raised.value.cause
            assert "ssl." not in raised.value.fix  # the keys are ZooKeeper's
    with pytest.raises(TlsError, match="SSLv3"):
        client_context(TlsSettings(versions=["SSLv3"]))
    with pytest.raises(TlsError, match="TLS_X_WITH_Y"):
        client_context(TlsSettings(cipher_suites=["TLS_X_WITH_Y"]))


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA256", "AES256-SHA256"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
    ],
)
def test_cipher_suites_have_two_names(suite: str, name: str) -> None:
    assert openssl_name(suite) == name
    client_context(TlsSettings(cipher_suites=[suite, "TLS_AES_128_GCM_SHA256"]))
