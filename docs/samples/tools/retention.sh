# keep a topic for two days or 1 GB a partition, whichever ends first
kafka-topics.sh --bootstrap-server 127.0.0.1:9092 --create --topic clicks --partitions 3 \
  --config retention.ms=172800000 --config retention.bytes=1073741824

# change it while the broker runs
kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --alter --entity-type topics --entity-name clicks \
  --add-config retention.ms=86400000

# keep the last value of every key instead
kafka-topics.sh --bootstrap-server 127.0.0.1:9092 --create --topic accounts \
  --config cleanup.policy=compact --config min.cleanable.dirty.ratio=0.1

# what is in force, and where each value is from
kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --describe --all --entity-type topics --entity-name clicks
