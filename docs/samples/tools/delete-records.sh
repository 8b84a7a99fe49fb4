# remove everything below offset 1 of partition 0: look, then execute
kpybroker topic trim clicks --partitions 0 --to 1
kpybroker topic trim clicks --partitions 0 --to 1 --execute
kpybroker topic describe clicks
