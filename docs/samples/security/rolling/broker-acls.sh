kafka-acls.sh --bootstrap-server 127.0.0.1:9092 --add --allow-principal User:broker --operation ClusterAction --cluster
kafka-acls.sh --bootstrap-server 127.0.0.1:9092 --add --allow-principal User:broker --operation Describe --topic '*'
