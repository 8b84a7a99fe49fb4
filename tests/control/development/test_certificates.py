"""The certificates of brokers for development."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path

from kpybroker.control.development.certificates import certificates, files_in


def test_they_stay_the_same_until_they_do_not_fit(tmp_path: Path) -> None:
    first = certificates(tmp_path / "tls", "localhost")
    assert first == files_in(tmp_path / "tls")
    before = [Path(file).read_bytes() for file in first]
    assert [Path(file).read_bytes() for file in certificates(tmp_path / "tls", "0.0.0.0")] == before
    assert [Path(file).read_bytes() for file in certificates(tmp_path / "tls", "other.example")] != before
    assert Path(first.broker).stat().st_mode & 0o77 == 0


def test_a_client_that_is_strict_about_rfc_5280_accepts_them(tmp_path: Path) -> None:
    """As Python's default context is from 3.13 on."""
    files = certificates(tmp_path, "localhost")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.broker)
    server.load_verify_locations(files.authority)
    server.verify_mode = ssl.CERT_REQUIRED
    client = ssl.create_default_context(cafile=files.authority)
    client.load_cert_chain(files.client)
    for context in (server, client):
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(4):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    assert ends[1].getpeercert() is not None
