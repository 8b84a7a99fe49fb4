kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --alter --entity-type broker-loggers --entity-name 0 \
    --add-config kafka.request.logger=DEBUG
kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --describe --entity-type broker-loggers --entity-name 0
kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --alter --entity-type broker-loggers --entity-name 0 \
    --delete-config kafka.request.logger
