# both print nothing when the cluster is whole
kafka-topics.sh --bootstrap-server 127.0.0.1:9092 --describe --under-replicated-partitions
kafka-topics.sh --bootstrap-server 127.0.0.1:9092 --describe --under-min-isr-partitions
