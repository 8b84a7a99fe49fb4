"""The attributes of Yammer's MBeans that are measured here.

Not measured: the standard deviation of a distribution, and the rates of its count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kpybroker.metrics.histogram import Histogram
from kpybroker.metrics.jolokia.names import Matcher, ObjectName
from kpybroker.metrics.mbeans import Family, Kind, quoted
from kpybroker.metrics.rates import Rates
from kpybroker.metrics.reading import Reading, Share, Tags, Value

PERCENTILES: Final = tuple(f"{digits}thPercentile" for digits in ("50", "75", "95", "98", "99", "999"))
SLICE_ROWS: Final = 500
NO_RATES: Final = Rates(0, 0.0)
Attributes = dict[str, int | float]
RatesOf = Mapping[tuple[Family, Tags], Rates]


def attributes(family: Family, value: Value, rates: Rates | None, now_s: float) -> Attributes:
    """Of one MBean. The rates of a meter are 0 before its first tick."""
    if isinstance(value, Histogram):
        found: Attributes = {"Count": value.count, "Mean": value.mean}
        found["Min"], found["Max"] = value.min * value.scale, value.max * value.scale
        return found | dict(zip(PERCENTILES, value.quantiles(), strict=True))
    if isinstance(value, Share):
        return {"Count": value.total_ns, "OneMinuteRate": value.one_minute}
    if value is None:
        return {}
    if family.attribute:
        return {family.attribute: value}
    if family.kind is not Kind.METER:
        return {"Value": value}
    mean = 0.0 if rates is None else rates.mean(int(value), now_s)
    rates = rates or NO_RATES
    return {
        "Count": value,
        "MeanRate": mean,
        "OneMinuteRate": rates.one_minute,
        "FiveMinuteRate": rates.five_minutes,
        "FifteenMinuteRate": rates.fifteen_minutes,
    }


def may_match(matcher: Matcher, family: Family) -> bool:
    """Whether an MBean of the family can match, whatever the values of its tags are."""
    return not family.fixed and matcher.may_match(family.domain, _keys(family), family.tags)


def _keys(family: Family) -> dict[str, str]:
    """The properties that all MBeans of a family have."""
    return {"type": family.type} | ({"name": family.name} if family.name else {})


def mbeans(
    readings: Iterable[Reading], matcher: Matcher, rates: RatesOf, now_s: float
) -> Iterator[tuple[ObjectName, Attributes] | None]:
    """Those that match. None after each slice of work. MBeans without a `name` come once for each attribute."""
    for reading in readings:
        for family, values in reading.columns:
            if not may_match(matcher, family):
                continue
            keys = _keys(family)
            for index, (row, value) in enumerate(zip(reading.rows, values, strict=True)):
                if index % SLICE_ROWS == SLICE_ROWS - 1:
                    yield None
                pairs = tuple((tag, quoted(text)) for tag, text in zip(family.tags, row, strict=True) if text)
                if value is None or not matcher.wants(frozenset([*keys, *(tag for tag, _ in pairs)])):
                    continue
                if matcher.matches_tags(pairs):
                    name = ObjectName(family.domain, (*keys.items(), *pairs))
                    yield name, attributes(family, value, rates.get((family, row)), now_s)
        yield None
