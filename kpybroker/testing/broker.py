"""One broker for a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.testing.brokers import Brokers
from kpybroker.testing.checking import kinds
from kpybroker.testing.checking.calls import checked
from kpybroker.testing.running.options import OPTIONS, BrokerKeywords, BrokerOptions, takes

if TYPE_CHECKING:
    from typing import Unpack


class Broker(Brokers):
    """One broker, for the length of a `with` or `async with` block, or between `start` and `stop`.

    - `topics`: created at the start; a mapping says how many partitions each has.
    - `partitions`: of topics that do not say it. `auto_create`: whether a topic is created when a client names it.
    - `config`: any of Kafka's keys.
    - `kafka_version`: serve what a release of Kafka served, "3.9" to "4.3": its APIs, their versions and its features;
      "3.9" is its ZooKeeper mode. `cap_versions` does so later.
    - `group_protocol`: "classic" or "consumer" (KIP-848), of each `consumer` that does not name its own.
    - `tls`: with certificates of its own. `sasl`: clients log in, by "plain", "scram" or "oauthbearer". `acl`: they log
      in, and may do what ACLs allow. `config` and the clients that it makes have the settings for it.
    - `port`: 0 takes a free one.
    - `data_dir`: keep the data there, for the next start. Otherwise they are removed, unless `keep`.
    - `in_thread`: run in a thread of this process. It starts in 50 ms, once its code is imported, instead of 200 ms;
      but test and broker share one interpreter, so that neither is fast while the other works.
    """

    @takes(BrokerOptions)
    @checked({**OPTIONS, "brokers": kinds.elsewhere("use Cluster(brokers=...), or leave it out")})
    def __init__(self, **options: Unpack[BrokerKeywords]) -> None:
        super().__init__(1, **options)

    @property
    def host(self) -> str:
        """The host of its first listener."""
        self.channel  # noqa: B018 -- raises if it is not running
        return self._listeners[0][0]

    @property
    def port(self) -> int:
        """The port of its first listener."""
        self.channel  # noqa: B018
        return self._listeners[0][1]
