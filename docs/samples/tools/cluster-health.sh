# partitions without a leader, or with too few replicas in sync: exit code 1 if there are any
kpybroker cluster health

# the same with Kafka's own tool: both print nothing when the cluster is whole
kafka-topics.sh --bootstrap-server 127.0.0.1:9092 --describe --under-replicated-partitions
kafka-topics.sh --bootstrap-server 127.0.0.1:9092 --describe --under-min-isr-partitions
