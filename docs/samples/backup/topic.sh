# one topic as JSON lines, while the broker runs: nothing of a record is lost
kpybroker topic consume greetings --exit --format json > greetings.jsonl
# and back, into another topic, which is made with as many partitions
kpybroker topic produce greetings-restored greetings.jsonl --format json --create
