#!/bin/sh
kpybroker metrics list localhost:9404 --object-name 'kafka.log:type=Log,*'
kpybroker metrics watch localhost:9404 --one-time \
    --object-name 'kafka.server:type=ReplicaManager,name=PartitionCount' \
    --object-name 'kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec' --attributes Count,Value
