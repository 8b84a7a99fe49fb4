"""The certificates of brokers for development."""

from __future__ import annotations

import os
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

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


@pytest.mark.skipif(os.name == "nt", reason="owners and modes of POSIX")
class TestWhoseDirectory:
    """The name is made up, so that another user of the machine may have made it first."""

    def test_a_new_one_is_private_whatever_the_umask(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            certificates(tmp_path / "D-tls", "localhost")
        finally:
            os.umask(before)
        assert (tmp_path / "D-tls").stat().st_mode & 0o077 == 0

    def test_one_of_another_user_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        certificates(tmp_path, "localhost")
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        with pytest.raises(PermissionError, match="another user"):
            certificates(tmp_path, "localhost")

    @pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
    def test_one_that_others_may_write_to_is_refused(self, tmp_path: Path, mode: int) -> None:
        tmp_path.chmod(mode)
        with pytest.raises(PermissionError, match="may write"):
            certificates(tmp_path, "localhost")

    @pytest.mark.parametrize("name", ["broker.pem", "ca.pem"])
    def test_files_that_others_may_write_to_are_refused(self, tmp_path: Path, name: str) -> None:
        certificates(tmp_path, "localhost")
        (tmp_path / name).chmod(0o666)
        with pytest.raises(PermissionError, match="may write"):
            certificates(tmp_path, "localhost")

    def test_a_link_of_ones_own_leads_where_it_leads_if_that_is_ones_own(self, tmp_path: Path) -> None:
        target = tmp_path / "target"
        target.mkdir()
        (tmp_path / "D-tls").symlink_to(target)
        certificates(tmp_path / "D-tls", "localhost")
        target.chmod(0o777)
        with pytest.raises(PermissionError, match="may write"):
            certificates(tmp_path / "D-tls", "localhost")
