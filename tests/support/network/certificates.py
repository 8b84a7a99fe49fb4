"""A certificate authority of the test's own, and certificates by it, made with `openssl` as files of each kind."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

PASSWORD = "secret1"


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """`ca.pem` is the certificate to trust, `ca.p12` the same as a PKCS12 store."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.certificate = directory / "ca.pem"
        self._key = directory / "ca.key"
        openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),  # made at once
            *("-days", "2", "-subj", "/CN=authority"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", self._key, "-out", self.certificate),
        )
        self.trust_p12 = directory / "ca.p12"
        openssl(
            *("pkcs12", "-export", "-nokeys", "-in", self.certificate, "-passout", f"pass:{PASSWORD}"),
            *("-jdktrust", "anyExtendedKeyUsage") if _knows_jdktrust() else (),
            *("-out", self.trust_p12),
        )

    def issue(
        self, name: str, address: str = "127.0.0.1", subject: str | None = None, *, own_key: bool = False
    ) -> tuple[Path, Path]:
        """(PEM file with key and certificate, PKCS12 store with both) for the name and address.

        `subject`: as in `openssl req -subj`, in place of the name. Those without an `own_key` have one for all.
        """
        key, request, certificate = (self.directory / f"{name}.{suffix}" for suffix in ("key", "csr", "crt"))
        key.write_text(_key_of(name if own_key else ""))
        openssl("req", "-new", "-key", key, "-subj", subject or f"/CN={name}", "-out", request)
        extensions = self.directory / f"{name}.ext"
        extensions.write_text(
            f"subjectAltName=IP:{address}\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid:always\n"
        )
        openssl(
            *("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial"),
            *("-days", "2", "-extfile", extensions, "-out", certificate),
        )
        pem, p12 = self.directory / f"{name}.pem", self.directory / f"{name}.p12"
        pem.write_text(key.read_text() + certificate.read_text())
        openssl(
            *("pkcs12", "-export", "-in", certificate, "-inkey", key, "-name", name),
            *("-passout", f"pass:{PASSWORD}", "-out", p12),
        )
        return pem, p12


@cache
def _key_of(name: str) -> str:
    """All certificates of a name have the same key in this process: to make one takes longer than all else here."""
    done = subprocess.run(
        ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@cache
def _knows_jdktrust() -> bool:
    """OpenSSL 3.2: the attribute that makes Java trust a certificate without a key."""
    usage = subprocess.run(["openssl", "pkcs12", "-help"], capture_output=True, text=True)
    return "-jdktrust" in usage.stderr
