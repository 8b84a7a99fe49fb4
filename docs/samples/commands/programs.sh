# names of topics with more than one partition
kpybroker topic list --format json | jq -r '.[] | select(.partitions > 1) | .name'

# wait until a group has read everything
until [ "$(kpybroker group describe readers --format json | jq '.[0].lag')" = 0 ]; do sleep 1; done

# a failure of any item is a failure of the command
if ! kpybroker topic create orders --partitions 3 2> errors.txt; then
  grep TOPIC_ALREADY_EXISTS errors.txt
fi
