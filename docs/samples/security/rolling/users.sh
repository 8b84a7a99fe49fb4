for user in broker admin alice; do
  kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --alter --entity-type users --entity-name $user \
    --add-config "SCRAM-SHA-512=[password=$user-secret]"
done
