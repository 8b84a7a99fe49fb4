"""What the soak of scraping finds, on samples made up."""

from __future__ import annotations

from compat_tests.metrics.soak import Sample, growth, line, verdict

MB = 1e6


def samples(*resident_mb: float, records: int = 5000) -> list[Sample]:
    """One a second; `records` more in each."""
    return [
        Sample(second, 0.1, resident * MB, second * 100, second * records, 7)
        for second, resident in enumerate(resident_mb)
    ]


def test_memory_that_grows_after_the_first_tenth_is_a_problem() -> None:
    start, flat = [30.0] * 10, [50.0] * 80
    assert growth(samples(*start, *flat, *[52.0] * 10)) == (50 * MB, 52 * MB)
    assert verdict(samples(*start, *flat, *[52.0] * 10))[0] == []
    (problem,) = verdict(samples(*start, *flat, *[53.0] * 10))[0]
    assert problem == "RSS 50.0 MB after the first tenth, 53.0 MB at the end: +6.0%"


def test_one_large_moment_at_the_end_is_none() -> None:
    assert verdict(samples(*[50.0] * 99, 90.0))[0] == []


def test_a_run_without_load_or_with_few_scrapes_shows_nothing() -> None:
    assert verdict(samples(*[50.0] * 100, records=0))[0] == ["no record was written"]
    assert verdict(samples(*[50.0] * 5))[0] == ["only 5 scrapes"]


def test_a_line_has_rates_and_times_of_the_last_seconds() -> None:
    expected = "1.6 min RSS 50.0 MB 100 requests/s 5000 records/s lag 7 scrape 100 ms, longest 100 ms"
    assert " ".join(line(samples(*[50.0] * 100), 10).split()) == expected
