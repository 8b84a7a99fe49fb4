"""What a broker for development and tests has in place of Kafka's defaults.

`kpybroker dev` and every broker that a Python program starts for its tests share these. What a user sets goes on top:
`BrokerConfig({**development_defaults(), "num.partitions": "3"})`.
"""

from __future__ import annotations

from kpybroker.config.replication_factors import out_of_reach


def development_defaults(brokers: int = 1) -> dict[str, str]:
    """The keys of one broker in an embedded cluster of `brokers`, as in Kafka's quickstart file for one.

    Each broker of a cluster needs in addition its own `broker.id`, `listeners` and `log.dirs`.
    """
    defaults = {key: str(used) for key, _, used in out_of_reach({}, brokers)}
    # A group's first member waits this long for others; in a test they mostly do not come.
    defaults |= {"broker.id": "0", "group.initial.rebalance.delay.ms": "0"}
    if brokers > 1:
        defaults["default.replication.factor"] = str(min(brokers, 3))
    return defaults
