# to a file, and into another topic: keys, nulls, headers, times and partitions are kept
kpybroker topic consume orders --exit --format json > orders.jsonl
kpybroker topic produce orders-copy orders.jsonl --format json --create

# those that match, as they arrive
kpybroker topic consume orders --exit --format json | grep second | kpybroker topic produce found --format json --create

# an empty topic with the partitions, replicas and settings of another
kpybroker topic create orders-empty --like orders
