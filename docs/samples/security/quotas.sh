# everyone may write 1 MB and read 2 MB a second, and create or delete 1 partition a second
kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --alter --entity-type clients --entity-default \
  --add-config producer_byte_rate=1000000,consumer_byte_rate=2000000,controller_mutation_rate=1

# but this client id may write 10 MB
kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --alter --entity-type clients --entity-name loader \
  --add-config producer_byte_rate=10000000

# a user together with a client id; everything of all other users
kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --alter --entity-type users --entity-name alice \
  --entity-type clients --entity-name reports --add-config consumer_byte_rate=5000000
kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --alter --entity-type users --entity-default \
  --add-config request_percentage=20

# 5 new connections a second from this address
kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --alter --entity-type ips --entity-name 192.0.2.7 \
  --add-config connection_creation_rate=5

# what is set
kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --describe --entity-type clients
kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --describe --entity-type ips

# no limit any more
kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --alter --entity-type clients --entity-name loader \
  --delete-config producer_byte_rate
