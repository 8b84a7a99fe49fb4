"""One sentence on each key of our own. Imported only for DescribeConfigs with documentation and for the page."""

from __future__ import annotations

from typing import Final

DOCS: Final[dict[str, str]] = {
    "kpybroker.validate.records": "Whether every produced record is read and validated, as in Kafka. If false, "
    "records are read only where the response depends on them; batch headers and checksums are always checked.",
    "kpybroker.shortcuts": "Which shortcuts for speed are taken: all, none, or a list of names. The plain paths "
    "next to them give the same results. For tests, for measuring, and to find the cause of an error.",
    "kpybroker.metrics.port": "Port on which /metrics is served to Prometheus; 0 takes a free one. "
    "Without it there are no metrics.",
    "kpybroker.metrics.host": "Address on which /metrics is served; 0.0.0.0 for all of IPv4, :: for all.",
    "kpybroker.metrics.spelling": "Names of the metrics: as the JMX exporter with Strimzi's rules writes them, as "
    "Strimzi's Metrics Reporter does, or as the dashboard Kafka Overview asks for them.",
    "kpybroker.jaas.config.file": "JAAS login file: the credentials for ZooKeeper in its Client context, those of SASL "
    "listeners in KafkaServer or <listener>.KafkaServer. KAFKA_OPTS can name it too, with "
    "-Djava.security.auth.login.config.",
    "kpybroker.scram.initial.users": "SCRAM users that a start creates if they have no credential yet, as "
    "SCRAM-SHA-256=[name=alice,password=...],... For embedded coordination, out of reach of kafka-configs --zookeeper.",
}
