# propose where the partitions of a topic go when brokers 0, 1 and 2 are to have them
echo '{"topics": [{"topic": "clicks"}], "version": 1}' > topics.json
kafka-reassign-partitions.sh --bootstrap-server 127.0.0.1:9092 --generate \
  --topics-to-move-json-file topics.json --broker-list 0,1,2 | tail -n 1 > plan.json
cat plan.json

# move them, at 50 MB/s at most, and look how far it is; --cancel reverts
kafka-reassign-partitions.sh --bootstrap-server 127.0.0.1:9092 --execute \
  --reassignment-json-file plan.json --throttle 50000000
kafka-reassign-partitions.sh --bootstrap-server 127.0.0.1:9092 --verify --reassignment-json-file plan.json
