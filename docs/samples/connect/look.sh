CONNECT=http://127.0.0.1:8083

# what runs where, and why a task has failed
curl -sf "$CONNECT/connectors?expand=status"

# run again what has failed
curl -sf -X POST "$CONNECT/connectors/shop/restart?includeTasks=true&onlyFailed=true"

# where a source and a sink are
curl -sf $CONNECT/connectors/shop/offsets
curl -sf $CONNECT/connectors/warehouse/offsets
