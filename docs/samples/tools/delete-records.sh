# remove everything below offset 1 of partition 0
echo '{"partitions": [{"topic": "clicks", "partition": 0, "offset": 1}], "version": 1}' > delete.json
kafka-delete-records.sh --bootstrap-server 127.0.0.1:9092 --offset-json-file delete.json
kafka-get-offsets.sh --bootstrap-server 127.0.0.1:9092 --topic clicks --time earliest
