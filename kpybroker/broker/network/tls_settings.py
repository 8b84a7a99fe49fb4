"""What the TLS of every connection has in common: its errors, where its stores are, the names of its cipher suites."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

PEM, PKCS12 = "PEM", "PKCS12"


class TlsError(Exception):
    """Settings or stores that are not usable: the cause in one line, what fixes it in another."""

    def __init__(self, cause: str, fix: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Store:
    """A key store or trust store; `type` None: by the file's name."""

    location: str
    password: str | None = field(default=None, repr=False)
    type: str | None = None


def openssl_name(suite: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 -> ECDHE-RSA-AES128-GCM-SHA256."""
    exchange, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    cipher = re.sub(r"AES_(\d+)", r"AES\1", cipher).replace("_CBC_", "_").replace("POLY1305_SHA256", "POLY1305")
    parts = ([] if exchange == "RSA" else [exchange]) + [cipher]
    return "-".join(parts).replace("_", "-")
