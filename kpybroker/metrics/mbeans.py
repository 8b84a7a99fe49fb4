"""Families: one MBean pattern each, with its kind, unit, meaning, and when to worry.

A family has Kafka's object name, `kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=...`. MBeans of Kafka's
newer metrics library have no `name`; their values are attributes (`connection-count`). Families that are no MBeans
(those of kafka_exporter, and of the process) have the name that Prometheus gets, in every spelling.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a value is, by the class of Kafka's MBean."""

    GAUGE = "gauge"
    """A number that goes up and down."""
    METER = "meter"
    """A count that only grows, with its rates (Yammer's Meter)."""
    HISTOGRAM = "histogram"
    """A distribution: count, sum, quantiles (Yammer's Histogram and Timer)."""
    SHARE = "share"
    """A share of the time, from 0 to 1, that Kafka counts in a Meter of nanoseconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One MBean pattern. `tags` are the keys of the object name after `name`; of some MBeans they are missing."""

    domain: str
    type: str
    name: str
    kind: Kind
    tags: tuple[str, ...]
    unit: str
    meaning: str
    worry: str = ""
    attribute: str = ""
    """Of MBeans without a `name`."""
    fixed: str = ""
    """What Prometheus gets in every spelling, where this is no MBean."""

    def object_name(self, values: tuple[str, ...] | None = None) -> str:
        """Kafka's name of the MBean with these values of its tags; without values, those of any."""
        if values is None:
            values = tuple("*" for _ in self.tags)
        parts = [f"type={self.type}"]
        if self.name:
            parts.append(f"name={self.name}")
        parts += [f"{tag}={quoted(value)}" for tag, value in zip(self.tags, values, strict=True) if value]
        return f"{self.domain}:{','.join(parts)}"


def quoted(value: str) -> str:
    """A value in an object name: in quotes where it has characters with a meaning there, as Sanitizer.jmxSanitize."""
    if value == "*" or not any(character in ',=:"*?\n\\/' for character in value):
        return value
    for plain in '\\"*?':
        value = value.replace(plain, f"\\{plain}")
    return '"' + value.replace("\n", "\\n") + '"'


class Table:
    """Families of one domain and type, in the order in which they are added."""

    def __init__(self, domain: str, mbean_type: str, tags: tuple[str, ...] = ()) -> None:
        self._domain = domain
        self._type = mbean_type
        self._tags = tags
        self._families: list[Family] = []

    def __iter__(self) -> Iterator[Family]:
        return iter(self._families)

    def gauge(self, name: str, unit: str, meaning: str, worry: str = "", tags: tuple[str, ...] | None = None) -> Family:
        """Add a gauge."""
        return self._add(name, Kind.GAUGE, unit, meaning, worry, tags)

    def meter(self, name: str, unit: str, meaning: str, worry: str = "", tags: tuple[str, ...] | None = None) -> Family:
        """Add a meter."""
        return self._add(name, Kind.METER, unit, meaning, worry, tags)

    def histogram(
        self, name: str, unit: str, meaning: str, worry: str = "", tags: tuple[str, ...] | None = None
    ) -> Family:
        """Add a distribution."""
        return self._add(name, Kind.HISTOGRAM, unit, meaning, worry, tags)

    def share(self, name: str, meaning: str, worry: str = "", tags: tuple[str, ...] | None = None) -> Family:
        """Add a share of the time."""
        return self._add(name, Kind.SHARE, "share", meaning, worry, tags)

    def attribute(
        self, name: str, unit: str, meaning: str, worry: str = "", tags: tuple[str, ...] | None = None
    ) -> Family:
        """Add an attribute of an MBean without a name: a count where it ends in `-total`, else a gauge."""
        kind = Kind.METER if name.endswith("-total") else Kind.GAUGE
        tags = self._tags if tags is None else tags
        family = Family(self._domain, self._type, "", kind, tags, unit, meaning, worry, attribute=name)
        self._families.append(family)
        return family

    def _add(self, name: str, kind: Kind, unit: str, meaning: str, worry: str, tags: tuple[str, ...] | None) -> Family:
        tags = self._tags if tags is None else tags
        family = Family(self._domain, self._type, name, kind, tags, unit, meaning, worry)
        self._families.append(family)
        return family


class FixedTable:
    """Families that are no MBeans, with the name that Prometheus gets."""

    def __init__(self) -> None:
        self._families: list[Family] = []

    def __iter__(self) -> Iterator[Family]:
        return iter(self._families)

    def gauge(self, fixed: str, tags: tuple[str, ...], unit: str, meaning: str, worry: str = "") -> Family:
        """Add a gauge."""
        return self._add(fixed, Kind.GAUGE, tags, unit, meaning, worry)

    def counter(self, fixed: str, tags: tuple[str, ...], unit: str, meaning: str, worry: str = "") -> Family:
        """Add a count that only grows."""
        return self._add(fixed, Kind.METER, tags, unit, meaning, worry)

    def _add(self, fixed: str, kind: Kind, tags: tuple[str, ...], unit: str, meaning: str, worry: str) -> Family:
        family = Family("", "", "", kind, tags, unit, meaning, worry, fixed=fixed)
        self._families.append(family)
        return family
