"""The made-up shop: the same day for a seed, in a format that is recognized, with fewer sessions at each step."""

from __future__ import annotations

import re
from collections import defaultdict

from kpybroker.pipelines.activity.formats import guess
from kpybroker.pipelines.activity.shop import FUNNEL, lines


def test_a_day_of_the_shop() -> None:
    made = lines(3, 400)
    assert made == lines(3, 400) != lines(4, 400)
    assert guess(made) == "access"
    times = [line.partition("[")[2][:20] for line in made]
    assert times == sorted(times)
    assert all(time.startswith("05/Mar/2024:") for time in times)
    pages: dict[str, list[str]] = defaultdict(list)
    for line in made:
        found = re.match(r'(\S+) .* "GET (\S+) HTTP/1.1" 200 \d+$', line)
        assert found is not None
        pages[found[1]].append(re.sub(r"\d+$", "*", found[2]))
    reached = [sum(step in visited for visited in pages.values()) for step in FUNNEL.split(",")]
    assert reached[0] == 400
    assert reached == sorted(set(reached), reverse=True)
    assert reached[-1] > 10
