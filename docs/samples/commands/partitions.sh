# what would go where, then do it: 50 MB a second at most, and wait
kpybroker partition move orders --to 1,2
kpybroker partition move orders --to 1,2 --throttle 50000000 --save before.json --wait --execute

# what is under way, and back again
kpybroker partition moves
kpybroker partition move --plan before.json --wait --execute

# more replicas
kpybroker partition move orders --replicas 3 --wait --execute

# leaders as they should be
kpybroker partition elect --execute
