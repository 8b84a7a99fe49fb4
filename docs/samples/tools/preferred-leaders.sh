kafka-leader-election.sh --bootstrap-server 127.0.0.1:9092 --election-type preferred --all-topic-partitions
