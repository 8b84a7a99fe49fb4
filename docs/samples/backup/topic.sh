# one topic as JSON lines, while the broker runs: nothing of a record is lost
kpybroker topic consume greetings --exit --format json > greetings.jsonl
# and back, into another topic
kpybroker topic create greetings-restored
kpybroker topic produce greetings-restored --format json < greetings.jsonl
