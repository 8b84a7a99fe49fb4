curl -s http://127.0.0.1:9099/v1/add_fault -d '{
  "match": {"api": "Produce", "topic": "orders"},
  "act": {"error": "NOT_LEADER_OR_FOLLOWER"},
  "trigger": {"times": 2}
}'
curl -s http://127.0.0.1:9099/v1/faults -d '{}'
