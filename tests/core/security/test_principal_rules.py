"""From names in certificates to principals: the cases of Kafka's SslPrincipalMapper."""

from __future__ import annotations

import pytest

from kpybroker.core.security.principal_rules import RuleError, parse_rules, principal_name

NAME = "CN=Duke,OU=JavaSoft,O=Sun Microsystems,C=US"


def mapped(rules: str, name: str = NAME) -> str | None:
    return principal_name(parse_rules(rules), name)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("DEFAULT", NAME),
        ("", None),
        (" , ,DEFAULT", NAME),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/", "Duke@JavaSoft"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, RULE:^CN=([^,]+).*$/$1/L, DEFAULT", "duke"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U", "DUKE"),
        ("RULE:^CN=(.*?),.*$/$1@Example/L,DEFAULT", "duke@example"),
        ("RULE:^CN=(.*?),.*$/a\\/b\\$1$1/", "a/b$1Duke"),
        ("RULE:^CN=(.*?),.*$/$2/", "$2"),
        ("RULE:^CN=(.*?),.*$/$12/", "Duke2"),
        ("RULE:^CN=(.*?),.*$/$0/", NAME),
        ("RULE:^O=.*$/x/", None),
        ("RULE:^O=.*$/x/,DEFAULT", NAME),
        ("RULE:CN=(.*?),(.*)/$1, $2/,DEFAULT", "Duke, OU=JavaSoft,O=Sun Microsystems,C=US"),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_makes_the_principal(rules: str, expected: str | None) -> None:
    assert mapped(rules) == expected


@pytest.mark.parametrize(
    "rules",
    [
        "DEFAULT[",
        "RULE:^CN=(.*?),OU=.*$/$1",
        "RULE:^CN=([^,]*.*$/$1/",
        "RULE:^CN=(.*?)/$1/L/.../",
        "RULE:abc",
        "RULE:a/b/X",
        "nothing",
    ],
)
def test_rules_that_cannot_be_read_are_refused(rules: str) -> None:
    with pytest.raises(RuleError, match="Invalid rule"):
        parse_rules(rules)
