# everything that is there now
kpybroker topic consume orders --exit

# the last two of each partition, with place, time and key
kpybroker topic consume orders --offset -2 --exit --format '%p:%o %d{iso} %k=%v %h\n'

# of the last hour, as JSON
kpybroker topic consume orders --offset @-1h --exit --format json | jq -c '{key, value}'

# as a member of a group: two records, then leave
kpybroker topic consume orders --group readers --num 2
