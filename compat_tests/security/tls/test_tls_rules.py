"""Names in certificates, mapping rules and encoded passwords are what Java and Kafka make of them."""

from __future__ import annotations

import os
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID

from compat_tests.deps import ROOT
from compat_tests.support.tools import program_command, run_process
from kpybroker.broker.network.distinguished_names import subject_of
from kpybroker.config.sources.passwords import CBC, GCM, PasswordEncoder
from kpybroker.core.security.principal_rules import RuleError, parse_rules, principal_name
from tests.broker.network.test_distinguished_names import certificate

JAVA = ROOT / "compat_tests" / "security" / "tls" / "TlsRules.java"
TITLE = x509.ObjectIdentifier("2.5.4.12")

SUBJECTS: list[list[list[tuple[x509.ObjectIdentifier, str]]]] = [
    [[(NameOID.COUNTRY_NAME, "DE")], [(NameOID.ORGANIZATION_NAME, "Ex")], [(NameOID.COMMON_NAME, "alice")]],
    [[(NameOID.COMMON_NAME, "a"), (NameOID.ORGANIZATIONAL_UNIT_NAME, "b")]],
    [[(NameOID.COMMON_NAME, 'all,of=them+<and>#this;"quoted"\\slash')]],
    [[(NameOID.COMMON_NAME, "#first")], [(NameOID.COMMON_NAME, " both ends ")]],
    [[(NameOID.COMMON_NAME, "Grün 名前 😀")], [(NameOID.LOCALITY_NAME, "Köln")]],
    [[(NameOID.EMAIL_ADDRESS, "a@b.example")], [(NameOID.COMMON_NAME, "x")]],
    [[(NameOID.SERIAL_NUMBER, "77")], [(NameOID.GIVEN_NAME, "G")], [(NameOID.SURNAME, "S")], [(TITLE, "Dr")]],
    [[(NameOID.DOMAIN_COMPONENT, "example")], [(NameOID.USER_ID, "u1")], [(NameOID.STREET_ADDRESS, "Main 1")]],
    [[(NameOID.STATE_OR_PROVINCE_NAME, "BY")], [(NameOID.DN_QUALIFIER, "q")], [(NameOID.COMMON_NAME, "tab\there")]],
]
NAMES = [
    "CN=Duke,OU=JavaSoft,O=Sun Microsystems,C=US",
    "CN=kafka-1,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown",
    "cn=duke",
    "",
]
RULES = [
    "DEFAULT",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, RULE:^CN=([^,]+).*$/$1@x/L, DEFAULT",
    "RULE:^CN=(.*?), *OU=(.*?), *O=(.*?), *L=(.*?), *ST=(.*?), *C=(.*?)$/$1@$2/L",
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.-]*).*$/$1/U",
    "RULE:^CN=(.*?),.*$/a\\/b$1/,DEFAULT",
    "RULE:^CN=(.*?),.*$/$12/,DEFAULT",
    "RULE:^(CN)=(.*?),.*$/$2$1/",
    ",DEFAULT",
    "RULE:^CN=(.*?)/$1/L",
    "RULE:bad",
    "DEFAULT,",
    "default",
    "RULE:^CN=(.*?),.*$/$1/X",
    "RULE:^CN=([^,]*.*$/$1/",
]


def ask_java(directory: Path, questions: list[tuple[str, ...]]) -> list[str]:
    file = directory / "questions"
    file.write_text("".join("\t".join(question) + "\n" for question in questions), encoding="utf-8")
    return run_process([*program_command("3.9.1", JAVA), str(file)]).out.split("\n")[:-1]


def ours(rules: str, name: str) -> str:
    try:
        made = principal_name(parse_rules(rules), name)
    except RuleError:
        return "invalid"
    return "no rule" if made is None else made


def test_names_rules_and_passwords_are_kafkas(tmp_path: Path) -> None:
    questions: list[tuple[str, ...]] = []
    expected: list[str] = []
    for number, rdns in enumerate(SUBJECTS):
        data = certificate(*rdns)
        (tmp_path / f"{number}.der").write_bytes(data)
        questions.append(("subject", str(tmp_path / f"{number}.der")))
        expected.append(subject_of(data))
    for cipher in (CBC, GCM):
        for password in ("", "x", "pässword 😀", "sixteen letters.", "x" * 1000):
            encoded = PasswordEncoder("a secret", cipher).encode(password, os.urandom)
            questions.append(("decode", "a secret", cipher, encoded))
            expected.append(password)
    for rules in RULES:
        for name in NAMES:
            questions.append(("rules", rules, name))
            expected.append(ours(rules, name))
    responses = ask_java(tmp_path, questions)
    assert len(responses) == len(questions)
    different = [one for one in zip(questions, responses, expected, strict=True) if one[1] != one[2]]
    assert not different
