"""The login of `--kafka-command-config` and `--kafka-profile`, in the spelling of each client library.

It is read as librdkafka's keys; what the other libraries have no word for is refused with the key's name, never left
out: a client without it would be another user, or none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from kpybroker.testing import UsageError

OF_SECURITY: Final = re.compile(r"security\..*|sasl\..*|ssl\..*|enable\.ssl\..*|enable\.sasl\..*")
MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
RENAMED: Final = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
"""By kafka-python's names. aiokafka has the first four, and the others as an `ssl.SSLContext`."""
OWN_NAME: Final = "ssl.endpoint.identification.algorithm"
"""Whether the broker's certificate has to have the broker's name."""


def settings(library: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """What a client of this library sets, of librdkafka's properties. Raises UsageError."""
    return _BY_LIBRARY[library](properties)


def _librdkafka(properties: Mapping[str, str]) -> dict[str, Any]:
    return dict(properties)


def _underscored(library: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """Of kafka-python's names."""
    own = {key: value for key, value in properties.items() if OF_SECURITY.fullmatch(key)}
    own.pop(OWN_NAME, None)
    unknown = sorted(own.keys() - RENAMED.keys())
    if own.get("sasl.mechanism", "PLAIN").upper() not in MODULES:
        unknown = [f"sasl.mechanism={own['sasl.mechanism']}"]
    if unknown:
        raise UsageError(
            f"{library} cannot log in with {unknown[0]}", 'use library="confluent-kafka", or another login'
        )
    found = {RENAMED[key]: value for key, value in own.items()}
    for key in {"security_protocol", "sasl_mechanism"} & found.keys():
        found[key] = found[key].upper()
    return found


def _checks_names(properties: Mapping[str, str]) -> bool:
    return properties.get(OWN_NAME, "https") != "none"


def _kafka_python(properties: Mapping[str, str]) -> dict[str, Any]:
    found = _underscored("kafka-python", properties)
    return found if _checks_names(properties) else {**found, "ssl_check_hostname": False}


def _aiokafka(properties: Mapping[str, str]) -> dict[str, Any]:
    found = _underscored("aiokafka", properties)
    files = {name: found.pop(name, None) for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_password")}
    if found.get("security_protocol", "").endswith("SSL"):
        import ssl

        context = ssl.create_default_context(cafile=files["ssl_cafile"])
        context.check_hostname = _checks_names(properties)
        if files["ssl_certfile"] is not None:
            context.load_cert_chain(files["ssl_certfile"], files["ssl_keyfile"], files["ssl_password"])
        found["ssl_context"] = context
    return found


def _java(properties: Mapping[str, str]) -> dict[str, Any]:
    own = _underscored("java", properties)
    if own.keys() & {"ssl_certfile", "ssl_keyfile"} and own.get("ssl_certfile") != own.get("ssl_keyfile"):
        fix = "put key and certificate into one PEM file, as ssl.keystore.location names it"
        raise UsageError("java takes a key and its certificate from one file", fix)
    found: dict[str, Any] = {}
    if "security_protocol" in own:
        found["security.protocol"] = own["security_protocol"]
    if "ssl_cafile" in own:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": own["ssl_cafile"]}
    if "ssl_certfile" in own:
        found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": own["ssl_certfile"]}
    if "ssl_password" in own:
        found["ssl.key.password"] = own["ssl_password"]
    if not _checks_names(properties):
        found[OWN_NAME] = ""
    if "sasl_mechanism" in own:
        module = MODULES[own["sasl_mechanism"]]
        user, password = (_quoted(own.get(f"sasl_plain_{name}", "")) for name in ("username", "password"))
        found["sasl.mechanism"] = own["sasl_mechanism"]
        found["sasl.jaas.config"] = f"{module} required username={user} password={password};"
    return found


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _spark(properties: Mapping[str, str]) -> dict[str, Any]:
    return {f"kafka.{name}": value for name, value in _java(properties).items()}


_BY_LIBRARY: Final[Mapping[str, Callable[[Mapping[str, str]], dict[str, Any]]]] = {
    "confluent-kafka": _librdkafka,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
    "java": _java,
    "spark": _spark,
}
