"""Lines of Graphite's plaintext protocol, named and written as Yammer's `GraphiteReporter` does for Kafka's MBeans.

`kafka.kafka.server.BrokerTopicMetrics.topic.orders.BytesInPerSec.count 5 1700000000`: the prefix, domain, type, each
tag with its value, the name, the dimension; then the value and the time in seconds.

As there, only Yammer's MBeans are sent: no values of Kafka's newer library, and nothing of kafka_exporter's. Not
measured here: `stddev`, the rates of a timer, and all rates but `1MinuteRate` of a share of the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kpybroker.config.values import java_double
from kpybroker.metrics.histogram import Histogram
from kpybroker.metrics.mbeans import Family, Kind
from kpybroker.metrics.rates import Rates
from kpybroker.metrics.reading import Reading, Share, Tags, Value

SLICE_ROWS: Final = 250
"""MBeans between two yields: about a millisecond."""
DIMENSIONS: Final = {
    "count": "count",
    "meanRate": "meanRate",
    "rate1m": "1MinuteRate",
    "rate5m": "5MinuteRate",
    "rate15m": "15MinuteRate",
    "min": "min",
    "max": "max",
    "mean": "mean",
    "stddev": "stddev",
    "sum": "sum",
    "median": "median",
    "p75": "75percentile",
    "p95": "95percentile",
    "p98": "98percentile",
    "p99": "99percentile",
    "p999": "999percentile",
}
"""Names in `kafka.graphite.dimension.enabled.<name>` -> what a line ends with, in the order in which they are sent."""
_QUANTILES: Final = ("median", "75percentile", "95percentile", "98percentile", "99percentile", "999percentile")
_TIMER: Final = "RateAndTimeMs"
_SPACE: Final = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Layout:
    """What is sent, and how it is named. MBeans whose whole name (without `prefix`) matches `exclude` are left out.

    `suffixes` are values of DIMENSIONS; a gauge's `value` is always sent.
    """

    prefix: str
    exclude: re.Pattern[str] | None = None
    suffixes: frozenset[str] = frozenset(DIMENSIONS.values())


def is_sent(family: Family) -> bool:
    """Whether this is an MBean of Yammer's."""
    return not family.fixed and not family.attribute


def lines(
    readings: Iterable[Reading],
    layout: Layout,
    rates: Mapping[tuple[Family, Tags], Rates],
    now_s: float,
    epoch_s: int,
) -> Iterator[str]:
    """The lines, a slice at a time. A slice without lines gives time to others as well.

    `now_s` is on the clock of `rates`, `epoch_s` the time that the lines carry.
    """
    moment = _Moment(now_s, epoch_s)
    for reading in readings:
        scopes: dict[tuple[str, ...], list[str]] = {}
        for family, values in reading.columns:
            if not is_sent(family):
                continue
            heads = scopes.setdefault(family.tags, [])
            while len(heads) < len(reading.rows):
                some = slice(len(heads), len(heads) + SLICE_ROWS)
                heads += [_scope(family.tags, row) for row in reading.rows[some]]
                yield ""
            for start in range(0, len(values), SLICE_ROWS):
                yield "".join(
                    _of_mbean(family, heads[index], values[index], layout, rates.get((family, row)), moment)
                    for index, row in enumerate(reading.rows[start : start + SLICE_ROWS], start)
                    if values[index] is not None
                )


def _scope(tags: Sequence[str], row: Tags) -> str:
    """``KafkaMetricsGroup.toScope``, with a dot at its end; empty without tags."""
    pairs = sorted((tag, value) for tag, value in zip(tags, row, strict=True) if value)
    return "".join(f"{tag}.{value.replace('.', '_')}." for tag, value in pairs)


class _Moment(NamedTuple):
    """See `lines`."""

    now_s: float
    epoch_s: int


def _of_mbean(family: Family, scope: str, value: Value, layout: Layout, rates: Rates | None, moment: _Moment) -> str:
    name = f"{family.domain}.{family.type}.{scope}{family.name}"
    if layout.exclude is not None and layout.exclude.fullmatch(name):
        return ""
    head = _SPACE.sub("-", f"{layout.prefix}.{name}")
    if family.kind is Kind.GAUGE:
        return f"{head}.value {java_double(value) if isinstance(value, float) else value} {moment.epoch_s}\n"
    wanted = layout.suffixes
    return "".join(
        f"{head}.{suffix} {number} {moment.epoch_s}\n"
        for suffix, number in _dimensions(family, value, rates, moment.now_s)
        if suffix in wanted
    )


def _dimensions(family: Family, value: Value, rates: Rates | None, now_s: float) -> list[tuple[str, str]]:
    """Of a meter, a distribution or a share: suffix and number."""
    if isinstance(value, Share):
        return [("count", str(value.total_ns)), ("1MinuteRate", f"{value.one_minute:.2f}")]
    if isinstance(value, Histogram):
        numbers = [("count", str(value.count))] if family.name.endswith(_TIMER) else []
        numbers += [
            ("min", f"{value.min * value.scale:.2f}"),
            ("max", f"{value.max * value.scale:.2f}"),
            ("mean", f"{value.mean:.2f}"),
            ("sum", f"{value.sum:.2f}"),
        ]
        return numbers + [(suffix, f"{one:.2f}") for suffix, one in zip(_QUANTILES, value.quantiles(), strict=True)]
    assert value is not None
    if rates is None:
        return [("count", str(value))]
    return [
        ("count", str(value)),
        ("meanRate", f"{rates.mean(int(value), now_s):.2f}"),
        ("1MinuteRate", f"{rates.one_minute:.2f}"),
        ("5MinuteRate", f"{rates.five_minutes:.2f}"),
        ("15MinuteRate", f"{rates.fifteen_minutes:.2f}"),
    ]
