# JSON in, Avro in the topic: by the latest schema of a subject, or by an id
echo '{"id": 7, "note": "in a hurry"}' | kpybroker topic produce orders --value-schema orders-value
# and out again as JSON, by the id in front of each value
kpybroker topic consume orders --exit --decode value --format json | jq -c .value
