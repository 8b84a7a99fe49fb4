"""docs/SECURITY.md: what its table of vulnerabilities says."""

from __future__ import annotations

import re

import pytest

from tests.support.programs.samples import ROOT

PAGE = (ROOT / "docs" / "SECURITY.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:compat_)?tests/[^`]+\.py)::(test_\w+)`", PAGE)))
SECRETS = re.compile(r"password|proof|stored_key|server_key|signature|hmac|nonce|secret", re.IGNORECASE)
WHERE = ("core/security/scram.py", "core/security/sasl/plain.py")
"""Where what a client sends is compared with a secret."""


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_each_test_that_it_names_exists(file: str, name: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf"^(?:async )?def {name}\(", text, re.MULTILINE)


def test_each_row_has_a_test_or_a_reason() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| CVE-")]
    assert len(rows) >= 15
    assert all(len(row.split("|")) == 5 and row.split("|")[3].strip() for row in rows)


def test_no_secret_is_compared_in_a_time_that_depends_on_it() -> None:
    """CVE-2021-38153: `==` ends at the first difference, `hmac.compare_digest` does not."""
    compared = []
    for name in WHERE:
        text = (ROOT / "kpybroker" / name).read_text(encoding="utf-8")
        assert "compare_digest" in text, name
        sides = re.findall(r"([\w.]+) (?:==|!=) ([\w.]+)", text)
        compared += [(name, *both) for both in sides if any(SECRETS.search(side) for side in both)]
    assert compared == []
