"""A Java client's `.properties` as librdkafka's keys: what Kafka's own tools take as `--command-config` works here.

Most keys have the same name in both. `RENAMED`, `CONVERTED` and `java_keys.IGNORED` hold those that have not. Keys of
librdkafka pass as they are, and it refuses one that neither has. Files of keys and certificates are recognized by
their content, since Java's `ssl.*.type` is often left out: librdkafka reads PEM, and PKCS#12 for a key, but no JKS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.client.connect.java_keys import IGNORED, UNREMARKABLE

SECRET: Final = re.compile(
    r"password|secret|sasl\.jaas\.config|ssl\.key(store)?\.(pem|key)|token|user\.info", re.IGNORECASE
)
"""Keys whose values are never printed."""

RENAMED: Final = {
    "request.timeout.ms": "socket.timeout.ms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}

ASSIGNORS: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
    "StickyAssignor": "cooperative-sticky",
}

JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
PEM_FIX: Final = (
    "convert it to PEM: keytool -importkeystore -srckeystore {0} -destkeystore store.p12 -deststoretype PKCS12, then "
    "openssl pkcs12 -in store.p12 -out store.pem -nodes; name store.pem in its place"
)


def translate(properties: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """librdkafka's keys with their values, and the keys that have no effect here and may be missed.

    Raises CommandError, exit code 2, for what cannot be translated; no text of it holds a value of `SECRET`.
    """
    translated: dict[str, str] = {}
    ignored = []
    for key, value in properties.items():
        if key in CONVERTED:
            translated |= CONVERTED[key](properties, value)
        elif key in RENAMED:
            translated[RENAMED[key]] = value
        elif key in IGNORED:
            if not UNREMARKABLE.fullmatch(key):
                ignored.append(key)
        else:
            translated[key] = value
    return translated, ignored


# --- JAAS


def jaas_options(text: str) -> tuple[str, dict[str, str]]:
    """The login module's class, without its package, and its options, of a `sasl.jaas.config`."""
    match = re.match(r"\s*([\w.$]+)\s+\w+\s*(.*?)\s*;?\s*$", text, re.DOTALL)
    if match is None:
        raise usage(
            "sasl.jaas.config cannot be read",
            'write it as Kafka does: sasl.jaas.config=org...PlainLoginModule required username="U" password="P";',
        )
    pairs = re.findall(r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;]+))""", match[2])
    options = {name: re.sub(r"\\(.)", r"\1", double) or single or bare for name, double, single, bare in pairs}
    return match[1].rpartition(".")[2], options


def _jaas(properties: Mapping[str, str], value: str) -> dict[str, str]:
    module, options = jaas_options(value)
    if module in ("PlainLoginModule", "ScramLoginModule"):
        return {f"sasl.{name}": options[name] for name in ("username", "password") if name in options}
    if module == "Krb5LoginModule":
        names = {"keyTab": "sasl.kerberos.keytab", "principal": "sasl.kerberos.principal"}
        return {names[name]: option for name, option in options.items() if name in names}
    if module == "OAuthBearerLoginModule":
        names = {"clientId": "client.id", "clientSecret": "client.secret", "scope": "scope"}
        found = {f"sasl.oauthbearer.{names[name]}": option for name, option in options.items() if name in names}
        return {"sasl.oauthbearer.method": "oidc", **found}
    raise usage(
        f"sasl.jaas.config names {module}, which librdkafka does not have",
        "use PlainLoginModule, ScramLoginModule, OAuthBearerLoginModule or Krb5LoginModule",
    )


# --- keys and certificates


def _kind(path: str, key: str) -> str:
    """PEM, PKCS12 or JKS, by the file's first bytes."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise usage(f"{key}: {path} cannot be read: {error.strerror}", "name a file that this user may read") from None
    if head.startswith(JKS_MAGIC):
        return "JKS"
    return "PEM" if b"-----BEGIN" in head else "PKCS12"


def _truststore(properties: Mapping[str, str], path: str) -> dict[str, str]:
    kind = _kind(path, "ssl.truststore.location")
    if kind == "PEM":
        return {"ssl.ca.location": path}
    fix = PEM_FIX if kind == "JKS" else "convert it to PEM: openssl pkcs12 -in {0} -out store.pem -nokeys"
    raise usage(f"ssl.truststore.location: {path} is {kind}, and librdkafka reads PEM", fix.format(path))


def _keystore(properties: Mapping[str, str], path: str) -> dict[str, str]:
    kind = _kind(path, "ssl.keystore.location")
    if kind == "JKS":
        raise usage(f"ssl.keystore.location: {path} is JKS, and librdkafka reads PEM and PKCS12", PEM_FIX.format(path))
    if kind == "PKCS12":
        return {"ssl.keystore.location": path}
    return {"ssl.certificate.location": path, "ssl.key.location": path}


def _keystore_password(properties: Mapping[str, str], value: str) -> dict[str, str]:
    path = properties.get("ssl.keystore.location")
    if path is not None and _kind(path, "ssl.keystore.location") == "PEM":
        return {} if "ssl.key.password" in properties else {"ssl.key.password": value}
    return {"ssl.keystore.password": value}


def _identification(properties: Mapping[str, str], value: str) -> dict[str, str]:
    return {"ssl.endpoint.identification.algorithm": value.lower() or "none"}


def _assignors(properties: Mapping[str, str], value: str) -> dict[str, str]:
    names = [name.strip().rpartition(".")[2] for name in value.split(",") if name.strip()]
    found = dict.fromkeys(ASSIGNORS.get(name, name) for name in names)
    if "cooperative-sticky" in found:  # librdkafka does not mix it with the others
        found = {"cooperative-sticky": None}
    return {"partition.assignment.strategy": ",".join(found)}


def _buffer(properties: Mapping[str, str], value: str, key: str) -> dict[str, str]:
    return {key: "0" if value.strip() == "-1" else value}  # the system's default


def _bootstrap(properties: Mapping[str, str], value: str) -> dict[str, str]:
    return {"bootstrap.servers": ",".join(part.strip() for part in value.split(",") if part.strip())}


def _nothing(properties: Mapping[str, str], value: str) -> dict[str, str]:
    return {}


CONVERTED: Final[dict[str, Callable[[Mapping[str, str], str], dict[str, str]]]] = {
    "sasl.jaas.config": _jaas,
    "ssl.truststore.location": _truststore,
    "ssl.truststore.password": _nothing,  # PEM has none
    "ssl.keystore.location": _keystore,
    "ssl.keystore.password": _keystore_password,
    "ssl.endpoint.identification.algorithm": _identification,
    "partition.assignment.strategy": _assignors,
    "bootstrap.servers": _bootstrap,
    "send.buffer.bytes": partial(_buffer, key="socket.send.buffer.bytes"),
    "receive.buffer.bytes": partial(_buffer, key="socket.receive.buffer.bytes"),
    "auto.offset.reset": lambda _, value: {"auto.offset.reset": "error" if value == "none" else value},
}
"""Keys whose values differ too: from all properties and the key's value, librdkafka's keys."""


def is_secret(key: str) -> bool:
    """Whether the value of this key is never printed."""
    return SECRET.search(key) is not None


def unknown_key(error: str, source: str) -> CommandError | None:
    """librdkafka's refusal of a key or value, with the place where it was given; None for another error."""
    match = re.search(r'No such configuration property: "([^"]*)"', error)
    if match:
        cause = f"{match[1]} is a key of neither a Java client nor librdkafka ({source})"
        return usage(cause, "correct its name, or remove it")
    match = re.search(r'(?:value|range).* for configuration property "([^"]*)"', error)
    if match:
        return usage(f"{error} ({source})", f"correct {match[1]}, or remove it")
    return None
