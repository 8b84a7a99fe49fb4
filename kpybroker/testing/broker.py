"""One broker for a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kpybroker.testing.brokers import START_S, Brokers

if TYPE_CHECKING:
    import os

    from kpybroker.testing.security import Sasl


class Broker(Brokers):
    """One broker, for the length of a `with` or `async with` block, or between `start` and `stop`.

    - `topics`: created at the start; a mapping says how many partitions each has.
    - `partitions`: of topics that do not say it. `auto_create`: whether a topic is created when a client names it.
    - `config`: any of Kafka's keys.
    - `tls`: with certificates of its own. `sasl`: clients log in, by "plain", "scram" or "oauthbearer". `acl`: they log
      in, and may do what ACLs allow. `config` and the clients that it makes have the settings for it.
    - `port`: 0 takes a free one.
    - `data_dir`: keep the data there, for the next start. Otherwise they are removed, unless `keep`.
    - `in_thread`: run in a thread of this process. It starts in 50 ms, once its code is imported, instead of 200 ms;
      but test and broker share one interpreter, so that neither is fast while the other works.
    """

    def __init__(
        self,
        *,
        topics: Sequence[str] | Mapping[str, int] = (),
        partitions: int | None = None,
        auto_create: bool | None = None,
        config: Mapping[str, Any] | None = None,
        tls: bool = False,
        sasl: Sasl | None = None,
        acl: bool = False,
        host: str = "127.0.0.1",
        port: int = 0,
        data_dir: str | os.PathLike[str] | None = None,
        keep: bool = False,
        in_thread: bool = False,
        start_timeout: float = START_S,
    ) -> None:
        super().__init__(
            1,
            topics=topics,
            partitions=partitions,
            auto_create=auto_create,
            config=config,
            tls=tls,
            sasl=sasl,
            acl=acl,
            host=host,
            port=port,
            data_dir=data_dir,
            keep=keep,
            in_thread=in_thread,
            start_timeout=start_timeout,
        )

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
