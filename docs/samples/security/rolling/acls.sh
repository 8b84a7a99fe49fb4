kafka-acls.sh --bootstrap-server 127.0.0.1:9092 --add --allow-principal User:alice --producer --idempotent \
  --topic orders
kafka-acls.sh --bootstrap-server 127.0.0.1:9092 --add --allow-principal User:alice --consumer --group readers \
  --topic orders
