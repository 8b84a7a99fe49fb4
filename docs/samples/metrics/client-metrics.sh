#!/bin/sh
kpybroker config set client-metrics producers \
    metrics=org.apache.kafka.producer. interval.ms=60000 match=client_software_name=apache-kafka-java
kpybroker config list client-metrics
kpybroker config describe client-metrics producers
kpybroker config unset client-metrics producers metrics interval.ms match
