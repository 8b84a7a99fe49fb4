kpybroker topic create orders --partitions 3 --config retention.ms=86400000
kpybroker topic list
kpybroker topic describe orders

# more partitions, another setting, and one back to its default
kpybroker topic alter orders --partitions 6 --set max.message.bytes=2000000 --delete retention.ms

# what would be deleted, then delete it
kpybroker topic delete 'test-*'
kpybroker topic delete 'test-*' --execute
