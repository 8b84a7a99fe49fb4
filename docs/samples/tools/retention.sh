# keep a topic for two days or 1 GB a partition, whichever ends first
kpybroker topic create clicks --partitions 3 --config retention.ms=172800000 --config retention.bytes=1073741824

# change it while the broker runs
kpybroker config set topic clicks retention.ms=86400000

# keep the last value of every key instead
kpybroker topic create accounts --config cleanup.policy=compact --config min.cleanable.dirty.ratio=0.1

# what was set, and everything that is in force
kpybroker config describe topic clicks
kpybroker config describe topic clicks --all
