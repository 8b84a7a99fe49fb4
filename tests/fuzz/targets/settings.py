"""What operators write: properties, JAAS, listeners, values, rules of names; and what clients send as patterns."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import gettempdir

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.keys.topic import TOPIC_KEYS
from kpybroker.config.listeners import parse_endpoints, security_protocol_map
from kpybroker.config.sources.jaas import JaasError, parse_jaas, parse_login_modules
from kpybroker.config.sources.passwords import PasswordError, decoder, encoder
from kpybroker.config.sources.properties import UnreadableFile, load_properties
from kpybroker.config.topic import parse_topic_value
from kpybroker.config.values import ConfigError, parse_value
from kpybroker.core.client_metrics.configs import parse as parse_subscription
from kpybroker.core.patterns.topics import compile_pattern, pattern_problem
from kpybroker.core.security.acls import parse_principal, parse_super_users
from kpybroker.core.security.kerberos_names import NoMatchingRule, parse_name, parse_rules
from kpybroker.core.security.principal_rules import RuleError
from kpybroker.core.security.principal_rules import parse_rules as parse_principal_rules
from kpybroker.core.share.group_settings import parse_offset_reset
from kpybroker.wire.errors import KafkaError
from tests.fuzz.target import Target, of_text, texts

FILE = Path(gettempdir()) / "kpybroker-fuzz.properties"
TYPES = ("BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "SSL": "SSL"}
SECRET = "hunter2"
ENCODED = BrokerConfig(
    {
        "broker.id": "0",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "password.encoder.secret": "secret",
        "password.encoder.iterations": "1024",
    }
)
NAMES = ("orders", "payments.eu", "a", "x" * 249)


def properties(data: bytes) -> None:
    FILE.write_bytes(data)
    load_properties(str(FILE))


def jaas(text: str) -> None:
    """As a file, and as a value; no error shows a value that stands in quotes."""
    for parse in (parse_jaas, parse_login_modules):
        try:
            parse("place", text)
        except JaasError as error:
            if SECRET in str(error):
                raise RuntimeError("an error shows a password") from error


def value(text: str) -> None:
    for kind in TYPES:
        try:
            parse_value("key", kind, text)
        except ConfigError:
            continue


def topic_value(text: str) -> None:
    """Of every setting of topics."""
    for name in TOPIC_KEYS:
        try:
            parse_topic_value(name, text)
        except ConfigError:
            continue


def listeners(text: str) -> None:
    for parse in (lambda: security_protocol_map(text), lambda: parse_endpoints("listeners", text, PROTOCOLS)):
        try:
            parse()
        except ConfigError:
            continue


def principals(text: str) -> None:
    parse_principal(text)
    parse_super_users(text)


def kerberos(text: str) -> None:
    """A principal, and after a line feed rules that make a user of it."""
    name, _, rules = text.partition("\n")
    parse_rules(rules.split(",") if rules else (), "EXAMPLE.COM").user(parse_name(name))


def certificates(text: str) -> None:
    """A name, and after a line feed the rules."""
    name, _, rules = text.partition("\n")
    for rule in parse_principal_rules(rules):
        rule.apply(name)


def pattern(text: str) -> None:
    """A pattern of topics' names: valid, or with words why not; both ways agree."""
    problem = pattern_problem(text)
    try:
        compiled = compile_pattern(text)
    except KafkaError:
        assert problem is not None
        return
    assert problem is None
    for name in NAMES:
        compiled.matches(name)


def client_metrics(text: str) -> None:
    """The values of a subscription, one a line."""
    parse_subscription("s", dict(line.partition("=")[::2] for line in text.split("\n")))


def password(text: str) -> None:
    decode = decoder(ENCODED)
    assert decode is not None
    decode(text)


def passwords() -> Iterable[bytes]:
    made = encoder(ENCODED)
    assert made is not None
    yield made.encode("password", bytes).encode()


TARGETS = (
    Target(
        "properties",
        properties,
        (UnreadableFile,),
        texts("a=b\n# c\n! d\nlisteners = PLAINTEXT://:9092 \\\n  ,SSL://:9093\nx:\\u0041\n"),
        ("kpybroker.config.sources.properties",),
    ),
    Target(
        "jaas",
        of_text(jaas),
        (),
        texts(
            'KafkaServer { a.b.PlainLoginModule required username="u" password="hunter2" user_u="hunter2"; };',
            'a.b.ScramLoginModule optional username="u" password="hunter2"; // note\n/* x */',
        ),
        ("kpybroker.config.sources.jaas",),
    ),
    Target("values", of_text(value), (), texts("true", "-17", "1.5e3f", "a, b,c"), ("kpybroker.config.values",)),
    Target(
        "topic-values",
        of_text(topic_value),
        (),
        texts("compact,delete", "1073741824", "0:1,2:3", "LogAppendTime", "*"),
        ("kpybroker.config.topic",),
    ),
    Target(
        "listeners",
        of_text(listeners),
        (),
        texts("PLAINTEXT://localhost:9092,SSL://[::1]:9093", "PLAINTEXT:PLAINTEXT,A:SSL"),
        ("kpybroker.config.listeners",),
    ),
    Target(
        "principals",
        of_text(principals),
        (ValueError,),
        texts("User:alice", "User:CN=a,O=b;User:admin"),
        ("kpybroker.core.security.acls",),
    ),
    Target(
        "kerberos",
        of_text(kerberos),
        (ValueError, NoMatchingRule),
        texts("a/b@EXAMPLE.COM\nRULE:[2:$1;$2](.*)s/a/$1x/g/L,DEFAULT", "alice@EXAMPLE.COM"),
        ("kpybroker.core.security.kerberos_names",),
    ),
    Target(
        "certificates",
        of_text(certificates),
        (RuleError,),
        texts("CN=a,OU=b,O=c\nRULE:^CN=(.*?),OU=(.*)$/$1@$2/L,DEFAULT"),
        ("kpybroker.core.security.principal_rules",),
    ),
    Target(
        "patterns",
        of_text(pattern),
        (),
        texts("orders.*", "(?i)a{2,3}|[^b-d[:alpha:]]+?$", r"\pL\Q.\E(?P<n>x)*", r"\x{10FFFF}\b"),
        ("kpybroker.core.patterns",),
    ),
    Target(
        "client-metrics-configs",
        of_text(client_metrics),
        (KafkaError,),
        texts("metrics=org.apache.kafka.\ninterval.ms=1000\nmatch=client_id=a.*,client_software_name=b"),
        ("kpybroker.core.client_metrics.configs",),
    ),
    Target(
        "offset-reset",
        of_text(parse_offset_reset),
        (ConfigError, ValueError),
        texts("latest", "by_duration:P3DT3H4M", "by_duration:PT0.5S"),
        ("kpybroker.core.share.group_settings",),
    ),
    Target(
        "passwords",
        of_text(password),
        (PasswordError,),
        passwords,
        ("kpybroker.config.sources.passwords",),
    ),
)
