kafka-transactions.sh --bootstrap-server 127.0.0.1:9092 list
kafka-transactions.sh --bootstrap-server 127.0.0.1:9092 find-hanging --broker-id 0
