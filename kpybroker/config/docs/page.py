"""Writes `docs/reference/configuration.md` from the tables; a test keeps it fresh.

python -m kpybroker.config.docs.page
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

from kpybroker.config.docs import topic as docs_topic
from kpybroker.config.keys.definition import READ_ONLY, Row
from kpybroker.config.keys.network import LOOPBACK_LISTENER
from kpybroker.config.keys.status import HONOURED, REASONS
from kpybroker.config.keys.topic import TOPIC_ROWS

PLACE: Final = Path(__file__).parents[3] / "docs" / "reference" / "configuration.md"

AREAS: Final = (
    ("log", "Logs"),
    ("network", "Network, limits, metrics"),
    ("group", "Groups, offsets, transactions"),
    ("replication", "Identity, replication, controller"),
    ("zookeeper", "ZooKeeper"),
    ("security", "Security"),
    ("kraft", "KRaft"),
    ("remote", "Tiered storage"),
    ("own", "kpybroker's own"),
)

_HEAD: Final = f"""\
# Configuration

<!-- Written by `python -m kpybroker.config.docs.page`: change the tables in kpybroker/config, not this page. -->

Every key of Kafka 3.9.1 is accepted, checked and shown by `kafka-configs --describe`. The column *here* says **yes**
where a key does what it does in Kafka, and otherwise why it has no effect. At start the broker names every key you
set that has none, and every key that is none (with the one you probably meant).

## Where values come from

Highest first, as in Kafka: dynamic for one broker, dynamic for all (both by `kafka-configs`, kept in the tree), then
what the broker was started with, then the default. What it was started with is, highest first: `--override
KEY=VALUE`; `KAFKA_*` environment variables (`kpybroker server` only), named as by the container images:
`KAFKA_LOG_RETENTION_HOURS` is `log.retention.hours`, `__` is `_`, `___` is `-`; the `server.properties` file.

A KRaft file works too: `node.id` is taken as `broker.id`, the controller's listeners are left out of `listeners` and
`advertised.listeners`, and what else belongs to the quorum is named as having no effect.

## Differences from Kafka

- Without `listeners`, the broker binds `{LOOPBACK_LISTENER}` and not every interface. `listeners=PLAINTEXT://:9092`
says every interface, as in Kafka.
- Without `advertised.listeners`, a client of a broker that is alone, or has embedded coordination, is told the address
by which it came.
- Without `zookeeper.connect`, coordination is embedded: `coordination.sqlite`, made in the first log directory.
- `listeners`, `advertised.listeners` and `listener.security.protocol.map` cannot be changed while the broker runs.
- Passwords cannot be set dynamically, as in Kafka without `password.encoder.secret`.

## Exit codes

| code | meaning |
|---|---|
| 0 | stopped in order |
| 1 | a failure that nobody foresaw: the log has its details |
| 2 | a bad option, key or value, or an unreadable file |
| 3 | a log directory cannot be used, or the last one failed |
| 4 | a log directory is locked by another broker |
| 5 | an address cannot be bound: the port is taken, or the host is not here |
| 6 | ZooKeeper is unreachable or refuses, or the embedded tree cannot be opened, read or written |
| 7 | the log directories belong to another cluster or another broker |
| 130, 143 | ended at once by a second SIGINT or SIGTERM |

SIGUSR1 ends nothing: it logs how long the event loop was held since the last one, at most and at the 99.9th percentile.

`kpybroker log`: 0 nothing is wrong, 1 damage was met (`dump`) or an error found (`verify`), 2 a bad option, a path
that is not of a log, or an unreadable file.

An error is two lines on standard error: `kpybroker: <cause>` and `fix: <what to do>`. Once ready, the first line of
the banner on standard output is `kpybroker ready at HOST:PORT` with the bound address, and stays as it is.
"""


def page() -> str:
    parts = [_HEAD, "\n## Topics\n", *_topic_table()]
    for area, title in AREAS:
        rows: tuple[Row, ...] = import_module(f"kpybroker.config.keys.{area}").ROWS
        docs: dict[str, str] = import_module(f"kpybroker.config.docs.{area}").DOCS
        parts += [f"\n## {title}\n", *_broker_table(rows, docs)]
    return "\n".join(parts) + "\n"


def _topic_table() -> Iterator[str]:
    yield "| key | type | default | default from | here | |"
    yield "|---|---|---|---|---|---|"
    for name, type_name, default, _, _, synonyms, status in TOPIC_ROWS:
        default_from = ", ".join(f"`{synonym}`" for synonym in synonyms)
        yield _row(f"`{name}`", type_name, _shown(default), default_from, _here(status), docs_topic.DOCS[name])


def _broker_table(rows: tuple[Row, ...], docs: dict[str, str]) -> Iterator[str]:
    yield "| key | type | default | changes while running | here | |"
    yield "|---|---|---|---|---|---|"
    for name, type_name, default, _, _, mode, status in rows:
        changes = "no" if mode == READ_ONLY else mode
        yield _row(f"`{name}`", type_name, _shown(default), changes, _here(status), docs[name])


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _shown(default: str | None) -> str:
    if default is None:
        return "none"
    return f"`{default}`" if default else "empty"


def _here(status: str) -> str:
    return "**yes**" if status == HONOURED else REASONS[status]


if __name__ == "__main__":
    PLACE.write_text(page(), encoding="utf-8")
