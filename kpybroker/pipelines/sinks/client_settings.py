"""Settings of the Java client, which Spark has, as those of librdkafka, which writes the topics of results."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kpybroker.pipelines.errors import PipelineError

_SAME = {"bootstrap.servers", "client.id", "security.protocol", "sasl.mechanism", "sasl.kerberos.service.name"}
_RENAMED = {
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
    "ssl.key.password": "ssl.key.password",
}
_LOGIN = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
_PASSWORD_LOGINS = re.compile(r"\.(ScramLoginModule|PlainLoginModule)\s")
_ONLY_SPARK = re.compile(r"^(fetch|max\.poll|isolation|group|auto|receive|metadata)\.|^max\.partition\.fetch")


def for_librdkafka(kafka: Mapping[str, str]) -> dict[str, str]:
    """The same connection for librdkafka. Raises `PipelineError` for a setting of security without a counterpart."""
    out: dict[str, str] = {}
    for key, value in kafka.items():
        if key in _SAME:
            out[key] = value
        elif key in _RENAMED:
            # the Java client's empty text means what librdkafka calls none
            out[_RENAMED[key]] = value or "none"
        elif key == "sasl.jaas.config":
            out |= _login(value)
        elif key in ("ssl.truststore.location", "ssl.keystore.location"):
            out |= _store(key, value, kafka)
        elif key.startswith(("ssl.", "sasl.")) and not key.endswith((".type", "store.password")):
            raise _no_counterpart(key)
    return out


def _login(jaas: str) -> dict[str, str]:
    if not _PASSWORD_LOGINS.search(jaas):
        raise _no_counterpart("sasl.jaas.config")
    found = {name: re.sub(r"\\(.)", r"\1", text) for name, text in _LOGIN.findall(jaas)}
    return {f"sasl.{name}": text for name, text in found.items()}


def _store(key: str, place: str, kafka: Mapping[str, str]) -> dict[str, str]:
    kind = kafka.get(key.replace(".location", ".type"), "JKS").upper()
    password = kafka.get(key.replace(".location", ".password"))
    if key == "ssl.truststore.location" and kind == "PEM":
        return {"ssl.ca.location": place}
    if key == "ssl.keystore.location" and kind == "PEM":
        return {"ssl.certificate.location": place, "ssl.key.location": place}
    if key == "ssl.keystore.location" and kind == "PKCS12":
        return {"ssl.keystore.location": place, **({"ssl.keystore.password": password} if password else {})}
    raise _no_counterpart(f"{key} of type {kind}")


def _no_counterpart(what: str) -> PipelineError:
    return PipelineError(
        f"Topics of results cannot be written with {what}: librdkafka, which writes them, has no such setting.",
        "Use PEM files and a login with a password, or write to a directory only.",
        2,
    )
