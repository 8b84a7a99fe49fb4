CONNECT=http://127.0.0.1:8083
JSON='Content-Type: application/json'

# make connectors, or change them
curl -sf -X PUT -H "$JSON" $CONNECT/connectors/shop/config -d @shop-source.json
curl -sf -X PUT -H "$JSON" $CONNECT/connectors/warehouse/config -d @warehouse-sink.json
