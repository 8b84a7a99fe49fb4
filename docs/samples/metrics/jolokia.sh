#!/bin/sh
curl -s http://localhost:9404/jolokia/read/kafka.server:type=ReplicaManager,name=PartitionCount/Value
curl -s 'http://localhost:9404/jolokia/read/kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec,*/Count'
curl -s http://localhost:9404/jolokia -d '[{"type": "search", "mbean": "kafka.log:type=Log,*"}, {"type": "version"}]'
