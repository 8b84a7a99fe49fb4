"""What this broker knows of the cluster and does for it: metadata, configuration, registration, topics, the controller.

The ways in, each built by `app` and used by handlers as an attribute of the broker: `metadata_cache.MetadataCache`,
`config_repository.ConfigRepository`, `registration.Registration`, `topic_admin.TopicAdmin`,
`controller.ClusterController`, `producer_ids.ProducerIds`; and the functions of `loggers`.

Never here: logs and records (`replication`), the controller's rules (`core.controller`), the shapes of requests
(`handlers`).
"""
