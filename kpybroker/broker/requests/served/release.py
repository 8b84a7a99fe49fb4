"""What a broker serves that takes the place of a release of Kafka (`kpybroker.kafka.version`): APIs and features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.served.apis import SERVED, SHARE_STATES
from kpybroker.broker.requests.served.version_cap import CapOf, VersionCap, uncapped
from kpybroker.config.keys.own import KAFKA_VERSION
from kpybroker.core.features import Ranges, of_release
from kpybroker.wire.api import ApiKey

OLDEST_PRODUCE_SINCE_4 = 3

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig


def release_served(config: BrokerConfig, supported: Ranges) -> tuple[Ranges, CapOf]:
    """The features of `supported` that the configured release has, and the cap of every client; all without the key."""
    release = config.get(KAFKA_VERSION)
    if release is None:
        return supported, uncapped
    from kpybroker.broker.requests.served.kafka_releases import levels_of

    cap = cap_of_release(str(release))
    return of_release(supported, levels_of(str(release))), lambda connection: cap


def cap_of_release(release: str) -> VersionCap:
    """What a broker of a release in the table served, of what is served here.

    From 4.0 on a release has no APIs between brokers that need ZooKeeper: they are not advertised, and served all the
    same. So are the newest versions in which brokers ask each other for the states of share groups. The oldest versions
    of Produce are advertised, and refused (KAFKA-18659).
    """
    from kpybroker.broker.requests.served import kafka_releases

    has, levels = kafka_releases.versions_of(release), kafka_releases.levels_of(release)
    listed = kafka_releases.capped(SERVED, has)
    lists_own_range = kafka_releases.lists_own_range(release)
    if ApiKey.LEADER_AND_ISR in has:
        return VersionCap(listed, lists_own_range, levels=levels)
    own = {key: SERVED[key] for key in kafka_releases.BETWEEN_BROKERS | (SHARE_STATES & has.keys())}
    own[ApiKey.PRODUCE] = (OLDEST_PRODUCE_SINCE_4, listed[ApiKey.PRODUCE][1])
    return VersionCap(listed | own, lists_own_range, {key: listed.get(key) for key in own}, levels)
