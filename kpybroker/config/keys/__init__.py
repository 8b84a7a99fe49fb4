"""The tables of keys, one module for each area; a key is a row.

Never here: what a key is for (`config.docs`) or its value in a broker (`config.broker`). Start from
`registry.BROKER_KEYS` for the keys of brokers and `topic.TOPIC_ROWS` for those of topics; `status` has the reasons of
keys without effect, `releases` what Kafka 4.3 has otherwise.
"""
