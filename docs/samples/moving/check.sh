# before the first start on Kafka's files: are they sound?
kpybroker log verify /var/lib/kafka/data
# then the same configuration file that Kafka read
kpybroker server /etc/kafka/server.properties
