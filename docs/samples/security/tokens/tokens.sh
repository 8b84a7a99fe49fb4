kafka-delegation-tokens.sh --bootstrap-server 127.0.0.1:9092 --command-config alice.properties \
  --create --max-life-time-period -1 --renewer-principal User:bob
kafka-delegation-tokens.sh --bootstrap-server 127.0.0.1:9092 --command-config alice.properties \
  --describe --owner-principal User:alice
