"""Configuration: every key of Kafka 3.9.1 with its type, rules, mode and status, and the typed values of one broker.

- Here: the tables of keys (`keys`), the sentences on them (`docs`), parsing and validation as Kafka's, and the readers
  of property files, environment variables and JAAS files (`sources`).
- Never here: the tree, the event loop, logging. `broker.cluster.config_repository` applies dynamic changes.
- Start from `broker.BrokerConfig`; a topic's settings are `topic.LogConfig`. To add a key, add a row in `keys` and a
  sentence in `docs`, then run `python -m tests.docs.configuration`.
"""
