"""The names that Prometheus gets for Kafka's MBeans: three spellings that dashboards ask for.

`jmx-exporter`: the JMX exporter with the rules that Strimzi ships, which most configurations of it share:
`..._bytesin_total`, `..._requesthandleravgidle_percent`.
`metrics-reporter`: Strimzi's Metrics Reporter, without JMX: `..._bytesinpersec_total`.
`kafka-overview`: the JMX exporter with the rules of Confluent's monitoring stacks, behind Grafana's dashboard 721 Kafka
Overview: `..._bytesinpersec`.

Distributions are summaries with count and sum in all three; the JMX exporter has no sum.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from typing import Final, NamedTuple

from kpybroker.metrics.mbeans import Family, Kind

SOFTWARE = "clientSoftwareName"


class Spelling(Enum):
    """A value of `kpybroker.metrics.spelling`."""

    JMX_EXPORTER = "jmx-exporter"
    METRICS_REPORTER = "metrics-reporter"
    KAFKA_OVERVIEW = "kafka-overview"


class Spelled(NamedTuple):
    """A family as Prometheus gets it. `labels` are the names for the tags.

    `type`: gauge, summary, counter, or untyped for a count whose name does not end in `_total` as a counter's must.
    """

    name: str
    type: str
    labels: tuple[str, ...]
    quantiles: tuple[str, ...] = ()
    """Of a summary: the values of its label `quantile`."""


_PADDED: Final = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
"""The JMX exporter puts `0.` before the digits of `50thPercentile`."""
_PLAIN: Final = ("0.5", "0.75", "0.95", "0.98", "0.99", "0.999")
_TYPES: Final = {Kind.GAUGE: "gauge", Kind.METER: "counter", Kind.HISTOGRAM: "summary", Kind.SHARE: "gauge"}


@cache
def spell(family: Family, spelling: Spelling) -> Spelled:
    """The name, type and labels of a family."""
    if family.fixed:
        return Spelled(family.fixed, _TYPES[family.kind], family.tags)
    spelled = _SPELL[spelling](family)
    spelled = spelled._replace(labels=tuple(label.replace("-", "_") for label in spelled.labels))
    if spelled.type == "counter" and not spelled.name.endswith("_total"):
        return spelled._replace(type="untyped")
    return spelled


def _jmx_exporter(family: Family) -> Spelled:
    kind, name, prefix = family.kind, family.name, _prefix(family, family.type)
    if family.attribute:
        name = "connections_software" if SOFTWARE in family.tags else family.attribute
        return Spelled(f"{prefix}_{_legal(name)}", _TYPES[kind], family.tags)
    if kind is Kind.HISTOGRAM:
        return Spelled(f"{prefix}_{_legal(name)}", "summary", family.tags, _PADDED)
    if kind is Kind.METER:
        name = f"{name[: name.index('PerSec')]}_total" if "PerSec" in name else f"{name}_count"
    elif "Percent" in name:
        name = f"{name[: name.index('Percent')]}_percent"
    return Spelled(f"{prefix}_{_legal(name)}", _TYPES[kind], family.tags)


def _metrics_reporter(family: Family) -> Spelled:
    kind, name = family.kind, family.attribute or family.name
    counts = kind in (Kind.METER, Kind.SHARE)
    if counts and not name.endswith("-total"):
        name += "_total"
    quantiles = _PLAIN if kind is Kind.HISTOGRAM else ()
    type_name = "counter" if counts else _TYPES[kind]
    return Spelled(f"{_prefix(family, family.type)}_{_legal(name)}", type_name, family.tags, quantiles)


def _kafka_overview(family: Family) -> Spelled:
    kind, name = family.kind, family.attribute or family.name
    labels = tuple(tag.lower() for tag in family.tags)
    type_name = family.type
    if family.attribute:
        labels = tuple(re.sub("(?<!^)([A-Z])", r"_\1", tag).lower() for tag in family.tags)
        type_name = type_name.replace("-", "")
    elif kind is Kind.SHARE:
        name += "_total"  # its OneMinuteRate, a gauge all the same
    quantiles = _PADDED if kind is Kind.HISTOGRAM else ()
    return Spelled(f"{_prefix(family, type_name)}_{_legal(name)}", _TYPES[kind], labels, quantiles)


_SPELL = {
    Spelling.JMX_EXPORTER: _jmx_exporter,
    Spelling.METRICS_REPORTER: _metrics_reporter,
    Spelling.KAFKA_OVERVIEW: _kafka_overview,
}


def _prefix(family: Family, type_name: str) -> str:
    return f"{_legal(family.domain)}_{_legal(type_name)}"


def _legal(text: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", text.lower())
