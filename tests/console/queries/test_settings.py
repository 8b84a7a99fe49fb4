"""What brokers say of their settings: Kafka's explanations have tags of HTML, ours have none."""

from __future__ import annotations

import pytest

from kpybroker.console.queries.settings import words


@pytest.mark.parametrize(
    ("documentation", "expected"),
    [
        (None, ""),
        ("", ""),
        ("Of at most 5 < 6 bytes &amp; more", "Of at most 5 < 6 bytes & more"),
        ("A list:<ul><li><code>a</code>: one</li><li>b</li></ul><p>End</p>", "A list: a: one b End"),
        ("<script>alert(1)</script>", "alert(1)"),
        ("x &lt;b&gt;", "x <b>"),
    ],
)
def test_words(documentation: str | None, expected: str) -> None:
    assert words(documentation) == expected
