REGISTRY=http://127.0.0.1:8081
JSON='Content-Type: application/vnd.schemaregistry.v1+json'

# register a schema: {"id":1,...}
curl -s -X POST -H "$JSON" $REGISTRY/subjects/clicks-value/versions \
  -d '{"schema": "{\"type\": \"record\", \"name\": \"Click\", \"fields\": [{\"name\": \"at\", \"type\": \"long\"}]}"}'

# may the next one have a field without a default? "is_compatible":false, and why
curl -s -X POST -H "$JSON" "$REGISTRY/compatibility/subjects/clicks-value/versions/latest?verbose=true" \
  -d '{"schema": "{\"type\": \"record\", \"name\": \"Click\", \"fields\": [{\"name\": \"by\", \"type\": \"long\"}]}"}'

# what is there, and what holds for it
curl -s $REGISTRY/subjects
curl -s $REGISTRY/subjects/clicks-value/versions/latest
curl -s -X PUT -H "$JSON" $REGISTRY/config/clicks-value -d '{"compatibility": "FULL_TRANSITIVE"}'

# delete it: softly, then for good
curl -s -X DELETE $REGISTRY/subjects/clicks-value
curl -s -X DELETE "$REGISTRY/subjects/clicks-value?permanent=true"
