"""One sentence on each key of our own. Imported only for DescribeConfigs with documentation and for the page."""

from __future__ import annotations

from typing import Final

_DIMENSIONS: Final = {
    "count": "the count",
    "meanRate": "the rate since the start",
    "rate1m": "the rate of the last minute",
    "rate5m": "the rate of the last 5 minutes",
    "rate15m": "the rate of the last 15 minutes",
    "min": "the least value",
    "max": "the greatest value",
    "mean": "the mean",
    "stddev": "the standard deviation, which is not measured here,",
    "sum": "the sum",
    "median": "the median",
    "p75": "the 75th percentile",
    "p95": "the 95th percentile",
    "p98": "the 98th percentile",
    "p99": "the 99th percentile",
    "p999": "the 99.9th percentile",
}

DOCS: Final[dict[str, str]] = {
    "kpybroker.log.client.lines.max": "How many log lines at INFO or above one client address may cause in a minute; a "
    "third is kept for warnings and errors. Then one line has the number of the others. 0: no limit.",
    "kpybroker.log.dir": "Directory of the broker's own log files, not of its data: server.log, controller.log, "
    "state-change.log, kafka-request.log, kafka-authorizer.log, log-cleaner.log, as Kafka names them. If unset, "
    "everything is logged to standard error only. Each process needs a directory of its own.",
    "kpybroker.log.levels": "Levels of loggers at the start, as in kafka.request.logger=DEBUG,root=WARN; they can be "
    "changed later with kafka-configs --entity-type broker-loggers. As in Kafka, kafka.request.logger is at WARN "
    "unless it is named.",
    "kpybroker.log.max.bytes": "Size at which a log file in kpybroker.log.dir is rotated, if kpybroker.log.roll is "
    "size.",
    "kpybroker.log.max.files": "How many rotated files of each log file are kept; older ones are removed.",
    "kpybroker.log.roll": "When log files in kpybroker.log.dir are rotated: by size, hourly or daily.",
    "kpybroker.validate.records": "Whether every produced record is read and validated, as in Kafka. If false, "
    "records are read only where the response depends on them, and of a sample of all batches; batch headers and "
    "checksums are always checked.",
    "kpybroker.max.state.bytes": "Memory, as estimated, that all clients together may take with what outlives their "
    "requests: fetch sessions, members of groups, committed offsets, transactional ids, clients that push metrics. "
    "What was there before a start of the broker does not count.",
    "kpybroker.max.state.bytes.per.ip": "The same for the clients of one address that have not logged in.",
    "kpybroker.max.state.bytes.per.principal": "The same for the clients of one principal that have logged in.",
    "kpybroker.client.metrics": "Whether clients are invited to push their metrics (KIP-714): off, subscribed, which "
    "is while there is a subscription, or on. Clients ask when they connect, and Java clients that were not invited do "
    "not ask again.",
    "kpybroker.kafka.version": "Serve what a release of Kafka served, 3.9 to 4.3: its APIs, their versions and its "
    "features, as far as they are served here. 3.9 is that of its ZooKeeper mode. Without it everything is served.",
    "kpybroker.new.cluster.features": "Which feature levels a new cluster finalizes: newest, or none. By default the "
    "newest where the tree is embedded, and none with ZooKeeper.",
    "kpybroker.new.cluster.id": "Id of a cluster that is new; CLUSTER_ID of the container images is the same. A "
    "cluster that exists keeps its own.",
    "kpybroker.shortcuts": "Which shortcuts for speed are taken: all, none, or a list of names. The plain paths "
    "next to them give the same results. For tests, for measuring, and to find the cause of an error.",
    "kpybroker.metrics.port": "Port on which /metrics is served to Prometheus; 0 takes a free one. "
    "Without it nothing is served.",
    "kpybroker.metrics.host": "Address on which /metrics is served; 0.0.0.0 for all of IPv4, :: for all.",
    "kpybroker.metrics.allowed.hosts": "Names by which /metrics and /jolokia are asked for, besides addresses, the "
    "machine's name and those in listeners and advertised.listeners; * is any. Where kpybroker.metrics.host is not "
    "loopback and this is empty, /metrics is served by any name.",
    "kpybroker.metrics.spelling": "Names of the metrics: as the JMX exporter with Strimzi's rules writes them, as "
    "Strimzi's Metrics Reporter does, or as the dashboard Kafka Overview asks for them.",
    "kafka.graphite.metrics.reporter.enabled": "Whether the Graphite reporter that "
    "kafka.metrics.reporters names sends.",
    "kafka.graphite.metrics.host": "Host of the Graphite server (carbon).",
    "kafka.graphite.metrics.port": "Port of Graphite's plaintext protocol.",
    "kafka.graphite.metrics.group": "First part of every name, to tell brokers or clusters apart.",
    "kafka.graphite.metrics.exclude.regex": "MBeans that are not sent: those whose whole name without "
    "kafka.graphite.metrics.group matches, as in kafka.network.*|kafka.server.*topic.*",
    **{
        f"kafka.graphite.dimension.enabled.{name}": f"Whether {what} of an MBean is sent."
        for name, what in _DIMENSIONS.items()
    },
    "kpybroker.otlp.endpoint": "Address of an OTLP receiver over HTTP, as in http://localhost:4318; /v1/metrics is "
    "appended. Needs the extra otlp. Without it nothing is sent.",
    "kpybroker.otlp.interval.ms": "How often metrics are sent to kpybroker.otlp.endpoint.",
    "kpybroker.otlp.headers": "Headers for kpybroker.otlp.endpoint, as in Authorization=Bearer%20TOKEN,tenant=a. "
    "Values are written as in a URL.",
    "kpybroker.zookeeper.port": "Port on which the embedded tree is served to clients of ZooKeeper; 0 takes a free "
    "one. Without it the tree is for this process alone. Not together with zookeeper.connect.",
    "kpybroker.zookeeper.host": "Address on which the embedded tree is served. A client that reaches it can read and "
    "change everything that the cluster keeps there.",
    "kpybroker.jaas.config.file": "JAAS login file: the credentials for ZooKeeper in its Client context, those of SASL "
    "listeners in KafkaServer or <listener>.KafkaServer. KAFKA_OPTS can name it too, with "
    "-Djava.security.auth.login.config.",
    "kpybroker.scram.initial.users": "SCRAM users that a start creates if they have no credential yet, as "
    "SCRAM-SHA-256=[name=alice,password=...],... For embedded coordination, out of reach of kafka-configs --zookeeper.",
}
