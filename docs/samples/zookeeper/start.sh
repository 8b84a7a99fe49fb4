kpybroker dev --zookeeper-port 2181
