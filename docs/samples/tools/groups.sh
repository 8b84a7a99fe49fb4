# who is in the group, where it is, and how far behind
kafka-consumer-groups.sh --bootstrap-server 127.0.0.1:9092 --describe --group readers
kafka-consumer-groups.sh --bootstrap-server 127.0.0.1:9092 --describe --group readers --members --verbose

# read everything again: stop the members first, look, then execute
kafka-consumer-groups.sh --bootstrap-server 127.0.0.1:9092 --group readers --topic greetings \
  --reset-offsets --to-earliest --dry-run
kafka-consumer-groups.sh --bootstrap-server 127.0.0.1:9092 --group readers --topic greetings \
  --reset-offsets --to-earliest --execute

kafka-consumer-groups.sh --bootstrap-server 127.0.0.1:9092 --delete --group readers
