"""Writes the configuration page from the tables: `python -m tests.docs.configuration`. A test keeps it up to date."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from kpybroker.config.docs.group_resource import DOCS as GROUP_SENTENCES
from kpybroker.config.docs.lookup import BROKER_SENTENCES
from kpybroker.config.docs.topic import DOCS as TOPIC_SENTENCES
from kpybroker.config.dynamic import FIXED_AT_START, QUOTA_KEYS
from kpybroker.config.groups.keys import GROUP_KEYS
from kpybroker.config.keys import group, kraft, log, network, own, remote, replication, security, zookeeper
from kpybroker.config.keys.definition import READ_ONLY, Row
from kpybroker.config.keys.network import LOOPBACK_LISTENER
from kpybroker.config.keys.own import CLIENT_METRICS, CLIENT_METRICS_SUBSCRIBED
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.releases import CHANGED, REMOVED, TOPIC_CHANGED, TOPIC_REMOVED
from kpybroker.config.keys.status import HONOURED, REASONS
from kpybroker.config.keys.topic import TOPIC_ROWS
from kpybroker.config.replication_factors import COUNTS_OF_BROKERS
from kpybroker.config.values import Validator, value_text
from kpybroker.core.client_metrics.configs import ATTRIBUTES, INTERVAL_MS_MAX, INTERVAL_MS_MIN
from kpybroker.core.client_metrics.configs import KEYS as CLIENT_METRICS_KEYS

PLACE: Final = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"
"""The file of the page."""

AREAS: Final = (
    ("Logs", log.ROWS),
    ("Network, limits, metrics", network.ROWS),
    ("Groups, offsets, transactions", group.ROWS),
    ("Identity, replication, controller", replication.ROWS),
    ("ZooKeeper", zookeeper.ROWS),
    ("Security", security.ROWS),
    ("KRaft", kraft.ROWS),
    ("Tiered storage", remote.ROWS),
    ("kpybroker's own", own.ROWS),
)


def _bullets(keys: Iterable[str], indent: str = "") -> str:
    return "\n".join(f"{indent}- `{key}`" for key in keys)


_HEAD: Final = f"""\
# Configuration

<!-- Written by `python -m tests.docs.configuration`: change the tables in kpybroker/config, not this page. -->

Every key of Kafka 3.9.1 and of Kafka 4.3.1 is accepted, validated and shown by `kafka-configs --describe`. The column
*here* says **yes** where a key does what it does in Kafka, and otherwise why it has no effect. At start the broker logs
each key you set that has no effect, and each name that is not a key, with the key you probably meant. Keys that demand
security which is not served (another authorizer, `super.users` without one) end the start.

Defaults and rules are those of Kafka 3.9.1. With `--kafka-version` 4.0 to 4.3 they are [those of Kafka
4.3](#what-kafka-4-3-has-otherwise).

## Where values come from

Highest first, as in Kafka:

1. dynamic values for one broker, set with `kafka-configs` and kept in the tree
2. dynamic defaults for all brokers, set and kept in the same way
3. the values at start, highest first: `--override KEY=VALUE`, `KAFKA_*` environment variables, the
   `server.properties` file
4. the default

Environment variables are read by `kpybroker server` only and are named as in the container images:
`KAFKA_LOG_RETENTION_HOURS` is `log.retention.hours`, `__` is `_`, `___` is `-`.

A KRaft file works too if it describes one node that is broker and controller: `node.id` becomes `broker.id`, the
controller's listeners are removed from `listeners` and `advertised.listeners`, and every other key of the quorum is
logged as having no effect. A file of a larger KRaft cluster (several voters, a controller that is another node) is
refused, because each of its nodes would start as a cluster of its own. It starts where its brokers find each other
another way: with the same `zookeeper.connect` in each file, or as `kpybroker server FILE --processes N`. An empty
`zookeeper.connect` starts one of them alone.

The quotas of replication can be set dynamically only, as in Kafka:

{_bullets(QUOTA_KEYS)}

## Differences from Kafka

- Without `listeners`, the broker binds `{LOOPBACK_LISTENER}`, not every interface.
  `listeners=PLAINTEXT://:9092` binds every interface, as in Kafka.
- Without `advertised.listeners`, a broker that is alone or has embedded coordination gives each client the address
  that the client connected to.
- Without `zookeeper.connect`, coordination is embedded: `coordination.sqlite` in the first log directory.
- With embedded coordination the number of brokers is known, and these keys are at most that number. What you set
  higher is lowered, and one warning names the keys with both values:
{_bullets(COUNTS_OF_BROKERS, "  ")}
- `kpybroker dev` and brokers of tests have `broker.id=0`, and groups that do not wait:
  `group.initial.rebalance.delay.ms=0`, `group.consumer.heartbeat.interval.ms=75` (and the lower bound of it),
  `group.consumer.assignment.interval.ms=0`, `group.consumer.min.session.timeout.ms=1000`. They invite clients to push
  metrics while there is a subscription: `{CLIENT_METRICS}={CLIENT_METRICS_SUBSCRIBED}`. A cluster of `dev --brokers N`
  also has `default.replication.factor` 3 (2 for two brokers).
- These keys cannot be changed while the broker runs:
{_bullets(FIXED_AT_START, "  ")}
- Passwords cannot be set dynamically, as in Kafka without `password.encoder.secret`.

## Exit codes

| code | meaning |
|---|---|
| 0 | stopped in order |
| 1 | an unexpected failure: the log has the details |
| 2 | a bad option, key or value, or an unreadable file |
| 3 | a log directory cannot be used, or the last one failed |
| 4 | a log directory is locked by another broker |
| 5 | an address cannot be bound: the port is taken, or the host is not here |
| 6 | ZooKeeper is unreachable or refuses, or the embedded tree cannot be opened, read or written |
| 7 | the log directories belong to another cluster or broker, or the broker id is registered already |
| 129, 130, 143 | ended at once by a second SIGHUP, SIGINT or SIGTERM |

SIGUSR1 does not stop the broker. It logs the longest time and the 99.9th percentile for which the event loop was
blocked since the last SIGUSR1.

`kpybroker log` exits with 0 if nothing is wrong, 1 if it found damage (`dump`) or an error (`verify`), 2 for a bad
option, a path that does not belong to a log, or an unreadable file.

An error is two lines on standard error: `kpybroker: <cause>` and `fix: <what to do>`. When the broker is ready, it
writes `kpybroker ready at HOST:PORT` with the bound address to standard output, and nothing else. Scripts may rely on
this line: [Command line](command-line.md#output).
"""


_OF_GROUPS: Final = """\
A consumer group (KIP-848) may have settings of its own, once `group.version` 1 is [finalized](feature-levels.md):
`kpybroker config set group GROUP KEY=VALUE`, or `kafka-configs --entity-type groups --entity-name GROUP` of Kafka 4.
The group need not exist, and keeps its settings when it is deleted. A change holds from the next heartbeat of each
member on.

A value must be within the bounds that the broker's keys set. Where they change later, what is stored stays, with
`--describe` too, and the nearest bound holds, with a warning in the log.
"""


_OF_CLIENT_METRICS: Final = f"""\
A subscription says which of their own metrics clients push to the brokers (KIP-714), how often, and which clients:
`kpybroker config set client-metrics NAME KEY=VALUE`, `kafka-client-metrics` of Kafka 4, or `kafka-configs
--entity-type client-metrics`. It is there once a key is set, and gone once none is. Every broker applies a change at
once; a client learns of it when it pushes next. Clients are invited as `{CLIENT_METRICS}` says.

- `metrics`: prefixes of names, as in `org.apache.kafka.producer.`; `*` is every metric; without any, none. franz-go
  takes `*` for a prefix: `org.apache.kafka.` is every metric to it too.
- `interval.ms`: {INTERVAL_MS_MIN} to {INTERVAL_MS_MAX}. Of several subscriptions the shortest counts, and never more
  than the default.
- `match`: pairs of an attribute and a pattern, as in `client_id=app-.*,client_software_name=librdkafka`. All must match
  the whole of a client's value; a subscription without pairs is for every client. The attributes are
{_bullets(ATTRIBUTES, "  ")}

Patterns are in [the language of RE2](../decisions/patterns.md), and cannot have a comma or an equals sign.
"""
_OF_KAFKA_4: Final = """\
`--kafka-version`, or `kpybroker.kafka.version`, of 4.0 to 4.3 gives a broker the defaults and rules of Kafka 4.3.1,
the same ones for all four. `kafka-configs --describe` then lists what 4.3.1 lists.

Where the key is not set, or is 3.9, the defaults and rules are those of 3.9.1, and a change of version changes no
setting of a running cluster. Every key of both releases is known all the same. Without it, those that Kafka 4 added are
listed once `group.version` 1 is [finalized](feature-levels.md).

A key that Kafka 4 removed keeps its effect with `--kafka-version` 4 too: most are about ZooKeeper. It is listed only
where it is set, and one line of the log names it. Topics may not set such a key any more, as in Kafka 4; what a topic
has set before keeps its effect.

| key | 3.9.1 | 4.3.1 |
|---|---|---|"""


def page() -> str:
    """The text of the page, as Markdown."""
    parts = [_HEAD, "\n## What Kafka 4.3 has otherwise\n", _OF_KAFKA_4, *_changes()]
    parts += ["\nRemoved since 3.9.1; what was added says so in the tables below:\n"]
    parts.append(_bullets(sorted(REMOVED | TOPIC_REMOVED)))
    parts += ["\n## Topics\n", *_topic_table()]
    parts += ["\n## One group\n", _OF_GROUPS, *_group_table()]
    parts += ["\n## One subscription to client metrics\n", _OF_CLIENT_METRICS, *_client_metrics_table()]
    for title, rows in AREAS:
        parts += [f"\n## {title}\n", *_broker_table(rows)]
    return "\n".join(parts) + "\n"


def _changes() -> Iterator[str]:
    """A row for each default, and each least or greatest value, that is not the same in both releases."""
    of_topics = {row[0]: (row[2], row[3]) for row in TOPIC_ROWS}
    of_brokers = {name: (key.default, key.validator) for name, key in BROKER_KEYS.items()}
    for changes, rows in ((TOPIC_CHANGED, of_topics), (CHANGED, of_brokers)):
        for name, fields in sorted(changes.items()):
            default, validator = rows[name]
            if fields.get("default", default) != default:
                yield _row(f"`{name}`", _shown(default), _shown(fields["default"]))
            elif "validator" in fields and fields["validator"][0] == "range":
                yield _row(f"`{name}`", _bounds(validator), _bounds(fields["validator"]))


def _bounds(validator: Validator) -> str:
    if validator[0] != "range":
        return "any"
    _, low, high = validator
    return f"at least {low}" if high is None else f"{low} to {high}"


def _topic_table() -> Iterator[str]:
    yield "| key | type | default | default from | here | |"
    yield "|---|---|---|---|---|---|"
    for name, type_name, default, _, _, synonyms, status in TOPIC_ROWS:
        default_from = ", ".join(f"`{synonym}`" for synonym in synonyms)
        yield _row(f"`{name}`", type_name, _shown(default), default_from, _here(status), TOPIC_SENTENCES[name])


def _group_table() -> Iterator[str]:
    yield "| key | type | default, or from | at least | at most | |"
    yield "|---|---|---|---|---|---|"
    for name, key in GROUP_KEYS.items():
        bounds = ("", "") if key.bounds is None else ("" if bound is None else f"`{bound}`" for bound in key.bounds)
        default = f"`{key.text}`" if key.default is None else f"`{key.default}`"
        yield _row(f"`{name}`", key.type, default, *bounds, GROUP_SENTENCES[name])


def _client_metrics_table() -> Iterator[str]:
    yield "| key | type | default | |"
    yield "|---|---|---|---|"
    for name, key in CLIENT_METRICS_KEYS.items():
        yield _row(f"`{name}`", key.type, _shown(value_text(key.default, key.type)), f"{key.doc}.")


def _broker_table(rows: tuple[Row, ...]) -> Iterator[str]:
    yield "| key | type | default | changes while running | here | |"
    yield "|---|---|---|---|---|---|"
    for name, type_name, default, _, _, mode, status in rows:
        changes = "no" if mode == READ_ONLY or name in FIXED_AT_START else mode
        yield _row(f"`{name}`", type_name, _shown(default), changes, _here(status), BROKER_SENTENCES[name])


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
